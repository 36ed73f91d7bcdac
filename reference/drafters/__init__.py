"""Where a draft comes from."""
