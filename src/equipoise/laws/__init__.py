"""Probability laws of random masks (post-randomization); read by masks, risk and attacks."""
