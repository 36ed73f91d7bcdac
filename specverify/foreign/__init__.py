"""Run foreign code in a process: detect how it ends, enforce a time limit, and find the line to report."""
