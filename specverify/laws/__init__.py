"""Laws (distributions of the output of programs): enumeration, sampling, error bounds, and models and scenarios."""
