"""Subjects: everything that can be examined, in one shape."""
