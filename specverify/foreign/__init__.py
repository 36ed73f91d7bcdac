"""Foreign code and the process that runs it: how it ends, its time limit, and the line to report."""
