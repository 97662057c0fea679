"""Tables: cells with margins, counted from records or read ready-made, and how their cells add up."""
