"""Planted bugs of batches: row order, mixed rows, ragged lengths, aliasing."""
