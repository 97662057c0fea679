"""Interfaces of methods (Rule, Mask, Measure), the Score a Measure returns, and bases that rules share."""
