"""Planted bugs of the drafter's cache: the output stays exact, the acceptance falls."""
