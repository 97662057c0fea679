"""Secondary cell suppression on arrays: patterns that protect, their proof, and the attacker's intervals."""
