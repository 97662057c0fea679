"""Attacks of intruders who know the public law of the mask."""
