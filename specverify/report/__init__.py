"""Verdicts as text, JSON, Markdown, HTML and figures."""
