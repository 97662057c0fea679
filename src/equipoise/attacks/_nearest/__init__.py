"""Exact nearest-neighbour search behind `Nearest`."""
