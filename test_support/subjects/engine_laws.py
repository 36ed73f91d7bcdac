"""The law of an engine in chosen scenarios, requests or its probe, and one right round of speculative sampling."""

from __future__ import annotations

import numpy as np

from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import made_subject


def law_verdict(make, examined):
    """Return the verdict on the law of the engine that ``make`` creates, in the scenarios or requests ``examined``."""
    subject, names = made_subject(make, "an engine"), {each.name for each in examined}
    programs = tuple(program for program in subject.programs if program.name in names)
    assert programs
    return run_check(subject.with_programs(programs), check_named("law_is_target"), Checklist(()))


def probe_verdict(make):
    """Return the verdict on the law of the engine that ``make`` creates in its probe.

    The probe is a program that tells wrong rules apart; a refutation in a scenario examines it for the cause.
    """
    subject = made_subject(make, "an engine")
    probe = subject.programs[0].probe()
    return run_check(subject.with_programs((probe,)), check_named("law_is_target"), Checklist(()))


def one_round(scenario, text, most, rng):
    """Return the new tokens of one round of speculative sampling after ``text``, with at most ``most`` drafts."""
    drafts = ()
    for _ in range(most):
        p, q = (model(text + drafts) for model in (scenario.target, scenario.draft))
        draft = int(rng.choice(len(q), p=q))
        if rng.random() * q[draft] >= p[draft]:
            rest = np.maximum(p - q, 0)
            return (*drafts, int(rng.choice(len(p), p=rest / rest.sum())))
        drafts = (*drafts, draft)
    p = scenario.target(text + drafts)
    return (*drafts, int(rng.choice(len(p), p=p)))
