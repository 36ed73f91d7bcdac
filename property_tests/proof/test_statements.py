"""Statements about two subjects: one accepts no more than another."""

from __future__ import annotations

from fractions import Fraction

import pytest

from specverify import proof
from specverify.proof.proved_subject import find_rule
from specverify.proof.search import ProofSearch
from specverify.proof.statements import STATEMENTS

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

PROVED, REFUTED, UNKNOWN = proof.ProofStatus


def test_token_verification_does_not_accept_more_than_block_verification():
    """The control of "longer": with its sides exchanged it is false."""
    longer = STATEMENTS["longer"]
    shorter = longer._replace(left=longer.right, right=longer.left)
    found = ProofSearch(shorter, find_rule("block-verification", 2), 2, 2, 60).run("shorter")
    assert found.status is REFUTED
    assert Fraction(found.figures["mass"]) < Fraction(found.figures["expected"])
