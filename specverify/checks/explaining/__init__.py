"""What a refutation is told with: the fault in the words of decoding, the rows that decide, the paths."""
