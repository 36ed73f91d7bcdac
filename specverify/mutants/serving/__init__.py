"""A small, complete and correct serving engine for speculative decoding; planted bugs replace its functions."""
