"""Foundations that know nothing of disclosure: errors, operating system, progress, randomness, solver, packed keys."""
