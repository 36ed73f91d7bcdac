"""Run code of other projects safely: detect when it ends the process, limit its time, and find the line to report."""
