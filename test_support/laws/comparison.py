"""Compare two decoders round by round on one tape, or by their laws; and small tasks for the comparison."""

from __future__ import annotations

from hypothesis import strategies as st

from reference import generate
from specverify.laws.draws import Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.model_strategies import tasks

seeds = st.integers(0, 1000)
small = tasks(3, 2, 6)


def rounds(decoder, prompt, seed):
    """Return the result of each round of a decoder, without its trace."""
    return [round_._replace(trace=()) for round_ in generate(decoder, prompt, Tape(seed)).rounds]


def same_law(decoder, other, prompt):
    return decoder_law(decoder, prompt).probabilities == decoder_law(other, prompt).probabilities
