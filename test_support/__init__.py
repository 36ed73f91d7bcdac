"""Helpers of the tests, by the folder of tests that needed them first; nothing here is collected."""
