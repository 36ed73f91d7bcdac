"""A small, complete and correct serving engine for speculative decoding. Planted bugs replace its parts."""
