"""Fellegi-Sunter record linkage behind `Linkage`."""
