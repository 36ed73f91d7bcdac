"""The command line; each command imports what it needs when it is called."""

from specverify.cli.application import app, main

__all__ = ["app", "main"]
