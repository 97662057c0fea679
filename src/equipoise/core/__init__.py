"""The nouns: what every method, flow and door speaks of. No method lives here."""
