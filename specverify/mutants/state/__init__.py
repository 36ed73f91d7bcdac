"""Planted bugs of recurrent and sliding-window state, and of what a round leaves to the next."""
