"""One recipe, run and scored."""
