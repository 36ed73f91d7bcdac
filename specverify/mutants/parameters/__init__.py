"""Planted bugs of sampling parameters and logits processors on verify rows."""
