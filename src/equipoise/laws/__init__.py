"""What a random mask did, as probabilities; read by masks, risk and attacks."""
