"""What a Rule, a Mask and a Measure is, and the Score a Measure gives."""
