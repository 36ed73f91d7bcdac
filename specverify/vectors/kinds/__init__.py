"""The kinds of test vectors: each file defines one ``Kind`` at its end."""
