"""Correct subjects that look wrong: no check may refute them."""
