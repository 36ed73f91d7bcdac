"""Planted bugs of the map from the drafter's tokens to the target's."""
