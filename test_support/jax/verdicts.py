"""The combined verdict of the exact checks on a verifier, in a share of the scenarios."""

from __future__ import annotations

from specverify.base.verdict import Status
from specverify.checks import EXACT_CHECKS
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.fresh_generators import with_generator
from specverify.subjects.verifier import verifier_subject
from test_support.idioms.judged import worst_of

SHARES = 24
LAW = tuple(check for check in EXACT_CHECKS if check.name == "law_is_target")


def said(verify, check, gamma=2, shares=SHARES):
    """Return the verdict of one exact check in a share of the scenarios."""
    subject = verifier_subject(with_generator(verify), verify.__name__, (gamma,))
    subject = subject._replace(scenarios=subject.scenarios[::shares])
    checks = tuple(each for each in EXACT_CHECKS if each.name == check)
    return next(iter(verify_subject(subject, Checklist(checks))))


def told(verify, gamma, place, checks=EXACT_CHECKS):
    """Return the worst status of the exact checks that had a case, and its statement; stops at a refutation."""
    return worst_of(verifier_subject(with_generator(verify), verify.__name__, (gamma,)), place, SHARES, checks)


def refuted(verify, gamma, place):
    """Return whether a check refutes a verifier in one of the shares of the scenarios, from ``place`` on.

    The law alone is examined first, in all shares: most mistakes change it.
    """
    return any(
        told(verify, gamma, place + later, checks)[0] == Status.REFUTED.value
        for checks in (LAW, EXACT_CHECKS)
        for later in range(SHARES)
    )
