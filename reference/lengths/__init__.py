"""How long a draft is. Every rule here is exact: a token that was drawn is never taken back."""
