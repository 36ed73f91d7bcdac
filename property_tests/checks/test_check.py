"""The situations of a subject: each decoder once, and none left out that drafts otherwise."""

from __future__ import annotations

import numpy as np

from specverify.checks.check import in_scenarios, law_in
from specverify.laws.scenarios import SCENARIOS
from specverify.subjects.subject import InScenario
from specverify.subjects.verifier import verifier_subject

SHORT = next(scenario for scenario in SCENARIOS if scenario.horizon == 3 and scenario.vocabulary == 2)

RNG = np.random.default_rng(0)


def verify(p, q, draft_tokens):
    emitted = []
    for place, token in enumerate(draft_tokens):
        if RNG.random() * q[place][token] >= p[place][token]:
            residual = np.maximum(p[place] - q[place], 0)
            return [*emitted, RNG.choice(len(residual), p=residual / residual.sum())]
        emitted.append(token)
    return [*emitted, RNG.choice(p.shape[1], p=p[-1])]


def drafts_in(here):
    """Return the largest number of drafts of a round."""
    return min(here.variant.drafts, here.scenario.horizon - 1)


def test_a_decoder_is_examined_once():
    """Every number of drafts that fits into a horizon occurs once, by the variant that is first."""
    subject = verifier_subject(verify, "a verifier")
    for scenario in SCENARIOS:
        here = list(in_scenarios(scenario.__eq__)(subject))
        if scenario.eos:
            continue
        most = {min(gamma, scenario.horizon - 1) for gamma in (1, 2, 3)}
        assert [drafts_in(each) for each in here] == sorted(most), scenario.name


def test_what_is_left_out_decodes_alike():
    """At horizon 3 the law of three drafts is that of two, in equal rounds; with one draft the rounds differ."""
    subject = verifier_subject(verify, "a verifier")
    one, two, three = (InScenario(variant, SHORT, rational=False) for variant in subject.variants)
    assert [here.variant.label for here in in_scenarios(SHORT.__eq__)(subject)] == ["gamma=1", "gamma=2"]
    laws = [law_in(here, 1000) for here in (one, two, three)]
    assert laws[1].probabilities == laws[2].probabilities
    assert laws[1].coverage == laws[2].coverage != laws[0].coverage


def test_the_only_variant_is_kept():
    subject = verifier_subject(verify, "a verifier", (3,))
    assert [here.variant.label for here in in_scenarios(SHORT.__eq__)(subject)] == ["gamma=3"]
