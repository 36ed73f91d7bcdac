"""The parts of a counterexample: the fault in the words of decoding, the rows that decide, the paths."""
