"""A small, whole and correct serving engine for speculative decoding, made of parts that planted bugs replace."""
