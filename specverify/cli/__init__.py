"""The command line. Each command imports its modules when it is called."""

from specverify.cli.application import app, main

__all__ = ["app", "main"]
