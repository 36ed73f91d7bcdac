"""Planted bugs of recurrent and sliding-window state."""
