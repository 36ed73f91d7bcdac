"""Helpers of the tests, in folders named like the tests that use them; pytest collects nothing here."""
