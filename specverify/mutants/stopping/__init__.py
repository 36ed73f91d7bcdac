"""Planted bugs of where a text ends, and of its stream."""
