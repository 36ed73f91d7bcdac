"""Class J: trees of drafts."""
