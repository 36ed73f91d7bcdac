"""Summaries of ``check_kernel``'s verdicts on a kernel, which the tests compare with ``docs/findings/``."""

from __future__ import annotations

import sys
from typing import Any

from specverify.base.verdict import Status
from specverify.report.prose import failure, scope, strength
from specverify.testing import KernelConvention, check_kernel

BOUNDARY, ROUNDED = "support_at_boundary_draws", "support_at_rounded_rows"


def refuted(kernel: Any, **options: Any) -> dict[str, str]:
    """Return the statement of every check that refutes a kernel; asserts that every other check holds.

    Options that are fields of ``KernelConvention`` are the convention of the kernel. All verdicts are printed.
    """
    fields = {name: options.pop(name) for name in KernelConvention._fields if name in options}
    convention = KernelConvention(library="torch", **fields)
    verdicts = check_kernel(kernel, convention, on_fail=None, timeout=6000, **options)
    for verdict in verdicts:
        line = f"{verdict.status} {verdict.check} {strength(verdict)}, {scope(verdict)}, {verdict.seconds:.0f} s"
        sys.stdout.write(f"{line}: {verdict.statement}\n")
        if verdict.status is Status.REFUTED:
            sys.stdout.write(failure(verdict) + "\n")
    assert {verdict.status for verdict in verdicts} <= {Status.HOLDS, Status.REFUTED}
    return {verdict.check: verdict.statement for verdict in verdicts if verdict.status is Status.REFUTED}
