"""What a run said, read from what it wrote, and written as a page, for code hosts, for test runners, as JSON."""
