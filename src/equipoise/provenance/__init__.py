"""What must be kept so that a release can be made again: fingerprints, seeds, journal."""
