"""Provenance of releases: fingerprints, seeds, recipes and the search journal, so that a release can be reproduced."""
