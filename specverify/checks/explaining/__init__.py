"""The parts of a counterexample: a sentence about the fault, the deciding rows of p and q, and paths with the fault."""
