"""What is under test."""
