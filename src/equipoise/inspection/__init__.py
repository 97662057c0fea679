"""Inspection of a file before protection: assess its risk, suggest roles, find direct identifiers."""
