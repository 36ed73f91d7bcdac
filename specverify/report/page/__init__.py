"""The report of a run as one HTML file without scripts or network access."""
