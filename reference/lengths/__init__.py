"""Rules for the length of a draft. Every rule here is exact, because a drawn token is never removed."""
