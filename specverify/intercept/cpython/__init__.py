"""Code that relies on CPython: its memory layout, types, code objects and garbage collector."""
