"""What five notes on speculative decoding state, and whether it is so: one executable test per claim."""
