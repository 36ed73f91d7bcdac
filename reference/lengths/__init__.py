"""Rules for the length of a draft. Every rule here is exact: a token that was drawn is never taken back."""
