"""Generalization lattice: all combinations of levels of the keys, and the cells at any node."""
