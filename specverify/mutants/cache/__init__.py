"""Planted bugs of the target's paged cache: rollback, positions, slots, pages."""
