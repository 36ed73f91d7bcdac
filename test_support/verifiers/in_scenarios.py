"""The verdict of one check on a verifier, in all of its scenarios or in a share of them."""

from __future__ import annotations

from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.forms import form_of_chains


def verdict(verify, check, most=None, form="row"):
    """Return the verdict of a check on a torch verifier, in all scenarios or in about ``most`` evenly spaced ones."""
    found, subject = check_named(check), verifier_subject_of(verify, "it", form_of_chains(form), (2,))
    scenarios = tuple(dict.fromkeys(case.situation.scenario for case in found.cases(subject)))
    apart = max(1, len(scenarios) // most) if most else 1
    return run_check(subject._replace(scenarios=scenarios[::-apart]), found, Checklist((found,)))
