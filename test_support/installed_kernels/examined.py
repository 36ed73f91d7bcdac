"""What ``check_kernel`` says of a kernel, as the tests compare it with ``docs/findings/``."""

from __future__ import annotations

import sys
from typing import Any

from specverify.base.verdict import Status
from specverify.report.prose import failure, scope, strength
from specverify.testing import check_kernel

BOUNDARY, ROUNDED = "support_at_boundary_draws", "support_at_rounded_rows"


def refuted(kernel: Any, **options: Any) -> dict[str, str]:
    """Return the statement of every check that refutes; every other must hold. All of it is written out."""
    verdicts = check_kernel(kernel, library="torch", on_fail=None, timeout=6000, **options)
    for verdict in verdicts:
        line = f"{verdict.status} {verdict.check} {strength(verdict)}, {scope(verdict)}, {verdict.seconds:.0f} s"
        sys.stdout.write(f"{line}: {verdict.statement}\n")
        if verdict.status is Status.REFUTED:
            sys.stdout.write(failure(verdict, verdicts) + "\n")
    assert {verdict.status for verdict in verdicts} <= {Status.HOLDS, Status.REFUTED}
    return {verdict.check: verdict.statement for verdict in verdicts if verdict.status is Status.REFUTED}
