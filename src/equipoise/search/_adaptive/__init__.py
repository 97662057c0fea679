"""What the adaptive search knows and which recipe it tries next."""
