"""Command-line tools of the project: page writers, the site, surveys of engines, a simulated GPU, golden verdicts."""
