"""What a run said as one HTML file that needs nothing else: no network, no script."""
