"""What every room stands on and knows nothing of disclosure: errors, the system, randomness, solver."""
