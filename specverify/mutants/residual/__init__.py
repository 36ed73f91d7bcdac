"""Class C: the token after a rejection, or after the last draft, has a wrong law."""
