"""Verifiers: rules that accept drafts. One verification is one call of the target; row i is its pmf after i drafts."""
