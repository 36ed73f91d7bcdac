"""Class A: drafts are kept or refused by a wrong rule."""
