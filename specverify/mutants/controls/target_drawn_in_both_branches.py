"""A draft from q is kept iff it equals a fresh draw from p, and the draw is emitted either way: exact."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import SHORT, Control, correct
from specverify.subjects.algorithm import algorithm_subject

ROW = correct("sample-and-match")._replace(name="target-drawn-in-both-branches", examples=SHORT)

CONTROL = Control(
    "target-drawn-in-both-branches",
    "accepts iff equal to the target's own draw",
    "mlxcel PR #992, issue #902",
    partial(algorithm_subject, ROW, "control"),
)
