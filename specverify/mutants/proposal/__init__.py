"""Class B: the declared q is not the law that the draft was drawn from."""
