"""A sampled draft is verified as a point mass, q being left out: exact, and accepted less often than it could be."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import SHORT, Control, correct, with_verifier
from specverify.reference import Claim, one_hot, residual
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.subjects.algorithm import algorithm_subject

ROW = correct("speculative-sampling")._replace(
    name="sampled-draft-as-a-point",
    build=with_verifier(
        accept_or_replace(lambda prefix, p, q, token: p[token], lambda p, q, token: residual(p, one_hot(token, p)))
    ),
    claims=frozenset(Claim) - {Claim.OPTIMAL_COUPLING},
    examples=SHORT,
)

CONTROL = Control(
    "sampled-draft-as-a-point",
    "never reads q",
    "EAGLE issues #183, #283 (qx = 1)",
    partial(algorithm_subject, ROW, "control"),
)
