"""Planted bugs of what is handed out beside the tokens."""
