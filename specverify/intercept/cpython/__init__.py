"""Everything that relies on CPython itself: its memory, its types, its code objects, its garbage collector."""
