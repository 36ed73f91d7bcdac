"""Planted bugs of the agreement between ranks."""
