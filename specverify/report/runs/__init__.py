"""Results of a run, read from its JSON and written as a page, SARIF, JUnit, Markdown or JSON."""
