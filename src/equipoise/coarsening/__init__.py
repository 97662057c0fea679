"""All combinations of levels as a lattice, and the cells at any node of it."""
