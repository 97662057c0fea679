"""Publish or suppress each cell by expected loss."""
