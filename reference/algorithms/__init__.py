"""One file per named system: a drafter, a length rule and a verifier put together, its paper and its claims."""
