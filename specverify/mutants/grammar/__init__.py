"""Planted bugs of the grammar's matcher: advance, rollback, mask."""
