"""The best node of the lattice of coarsenings, with proof."""
