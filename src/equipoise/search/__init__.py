"""Many trials: sweep, frontier, adaptive search, best coarsening, the risk-utility map."""
