"""The exit status of the commands that examine subjects."""

from __future__ import annotations

import pytest

from specverify.base.edges import edge_lines, edge_of
from specverify.base.verdict import Evidence, Status, Verdict
from specverify.cli.subject_commands import exit_status

NOTE = edge_of("it raises ValueError", "random at it.py:3 gives 0.0", 2.0**-53)

WRONG = Verdict("it", "law_is_target", Status.REFUTED, "TV = 1/2", "lossless", Evidence.EXACT)

EDGE_ONE = Verdict("it", "support_at_boundary_draws", Status.REFUTED, "once", "supported", Evidence.EXACT)._replace(
    figures={"edge": 2.0**-24}
)

NOTED = EDGE_ONE._replace(status=Status.HOLDS, statement="; ".join(edge_lines([NOTE])), figures={"edges": [NOTE]})

HOLDS = WRONG._replace(status=Status.HOLDS, check="greedy_is_argmax", statement="fine")

UNKNOWN = WRONG._replace(status=Status.UNKNOWN)


def test_the_exit_status_is_0_only_where_something_was_examined():
    def status(*found):
        return exit_status([Verdict("a", "b", status, "") for status in found])

    assert status(Status.HOLDS, Status.NOT_APPLICABLE, Status.DECLARED_BIAS) == 0
    assert status(Status.HOLDS, Status.UNKNOWN) == 3
    assert status(Status.REFUTED, Status.UNKNOWN) == 1
    assert status(Status.REFUTED, Status.UNUSABLE, Status.HOLDS) == 2
    for nothing in ((), (Status.NOT_APPLICABLE,), (Status.REFUSED, Status.NOT_APPLICABLE)):
        assert status(*nothing) == 3


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ([HOLDS, NOTED], 0),
        ([HOLDS, EDGE_ONE], 4),
        ([WRONG, EDGE_ONE], 1),
        ([WRONG, NOTED], 1),
        ([UNKNOWN, NOTED], 3),
        ([UNKNOWN, EDGE_ONE], 4),
        ([EDGE_ONE, HOLDS._replace(status=Status.UNUSABLE)], 2),
    ],
)
def test_the_exit_status_tells_an_edge_from_a_wrong_law(verdicts, status):
    assert exit_status(verdicts) == status
