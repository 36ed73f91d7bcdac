"""What one check says of a verifier, in all of its scenarios or in the first of them."""

from __future__ import annotations

from itertools import islice

from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import verifier_subject_of


def verdict(verify, check, most=None, form="row"):
    """Return what a check says of a torch verifier in the first ``most`` scenarios that it looks at."""
    found, subject = check_named(check), verifier_subject_of(verify, "it", form, (2,))
    scenarios = dict.fromkeys(case.situation.scenario for case in islice(found.cases(subject), most))
    return run_check(subject._replace(scenarios=tuple(scenarios)), found, Checklist((found,)))
