"""Exact nearest neighbours behind `Nearest`."""
