"""Intruders who have read the law of the mask."""
