"""Class D: random numbers are used twice, correlated, or come from elsewhere."""
