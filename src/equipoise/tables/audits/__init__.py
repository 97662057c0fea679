"""What an attacker can compute from released tables: intervals of suppressed and changed cells."""
