"""All attacks on one release, in sentences."""
