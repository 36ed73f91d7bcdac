"""Python's own random calls, and the threads in which they may be made."""
