"""Reported statistics: planted bugs, and engines of unlike kinds that report rightly."""

from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from specverify.checks import Conditions
from specverify.mutants.promising import STATISTICS, in_turn, returning
from specverify.promises.statistics import examine
from specverify.subjects.answering import answering_made
from specverify.testing import Made, UnusableSubject, check_engine, check_sampler

pytestmark = pytest.mark.usefixtures("named_checks_alone")

NAMES = (
    "accepted",
    "drafted",
    "rejected",
    "rounds",
    "acceptance_rate",
    "accepted_per_position",
    "acceptance_histogram",
    "usage",
    "tokens_per_round",
)


def verdict(make, returns):
    found = check_engine(make, returns=returns, checks=["statistics_match"], on_fail=None, quick=True)
    return next(v for v in found if v.check == "statistics_match")


@pytest.mark.thorough(keep=8)
@pytest.mark.parametrize("fault", STATISTICS)
def test_a_wrong_number_is_refuted(fault):
    make = in_turn if fault == "usage of all requests" else returning
    found = verdict(partial(make, fault), NAMES)
    assert found.status == "refuted"
    assert any(word in found.counterexample.fault for word in ("report", "rate", "usage", "position"))


def plain(s, length):
    tokens = ()
    while len(tokens) < length:
        tokens += (int(np.random.choice(s.vocabulary, p=s.target(s.prompt + tokens))),)
    return tokens


class Report(NamedTuple):
    tokens: tuple
    usage: dict
    accepted: int


def never_drafts(s):
    """Every token is a round of its own."""
    return lambda: (plain(s, s.horizon), {"accepted": 0, "drafted": 0, "rounds": s.horizon, "tokens_per_round": 1.0})


def first_by_prefill(s):
    """The first token is no round's."""
    return lambda: (plain(s, s.horizon), {"accepted": 0, "rounds": s.horizon - 1, "usage": usage(s)})


def as_named_tuple(s):
    return lambda: Report(plain(s, s.horizon), usage(s), 0)


def as_object(s):
    return lambda: SimpleNamespace(token_ids=plain(s, s.horizon), usage=SimpleNamespace(**usage(s)), accepted=0)


def usage(s):
    return {"prompt_tokens": len(s.prompt), "completion_tokens": s.horizon, "total_tokens": len(s.prompt) + s.horizon}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (never_drafts, ("accepted", "drafted", "rounds", "tokens_per_round")),
        (first_by_prefill, ("accepted", "rounds", "usage")),
        (as_named_tuple, ("usage", "accepted")),
        (as_object, ("usage", "accepted")),
    ],
)
def test_right_reports_of_unlike_kinds_hold(make, names):
    assert verdict(make, names).status == "holds"


def test_a_report_that_is_not_there_is_named():
    with pytest.raises(UnusableSubject, match="accepted was not found beside"):
        check_engine(lambda s: Made(lambda: plain(s, s.horizon)), returns=("accepted",), quick=True)


def test_a_sampler_reports_of_its_tokens():
    def sample(seed, n, off=0):
        rows = np.random.default_rng(seed).integers(0, 2, (n, 2)).tolist()
        return {"tokens": rows, "usage": [{"completion_tokens": 2 + off}] * n}

    law = {(a, b): 0.25 for a in range(2) for b in range(2)}
    how = {"law": law, "returns": ("usage",), "on_fail": None, "tv": 0.2}
    assert {v.status for v in check_sampler(sample, **how)} == {"holds"}
    assert {v.status for v in check_sampler(partial(sample, off=1), **how)} == {"refuted"}


def as_meta_info(s, fault=""):
    """SGLang's form: counts among the facts of a request."""

    def decode(prompt):
        own = s._replace(prompt=tuple(prompt))
        new = plain(own, s.horizon)
        facts = {
            "completion_tokens": len(new) + (fault == "usage"),
            "prompt_tokens": len(prompt),
            "spec_verify_ct": len(new) * (3 if fault == "rounds" else 1),
            "spec_accept_length": 0.4 if fault == "tokens_per_round" else 1.0,
            "spec_accept_token_num": 4 if fault == "accepted" else 0,
            "spec_draft_token_num": 0,
        }
        return {"output_ids": list(new), "meta_info": facts}

    return decode


@pytest.mark.parametrize("fault", ["", "usage", "rounds", "tokens_per_round", "accepted"])
def test_statistics_among_the_facts_of_a_request(fault):
    names = (fault,) if fault in {"usage", "rounds", "tokens_per_round"} else ("usage", "rounds", "accepted", "drafted")
    found = verdict(partial(as_meta_info, fault=fault), names)
    assert found.status == ("refuted" if fault else "holds"), found


@pytest.mark.parametrize(("left_out", "status"), [(True, "refuted"), (False, "holds")])
def test_a_number_that_is_missing_on_some_paths_is_refuted(left_out, status):
    def make(s):
        def decode():
            new = plain(s, s.horizon)
            return new, {} if left_out and new[0] == 1 else {"accepted": 0}

        return decode

    found = verdict(make, ("accepted",))
    assert found.status == status, found
    assert not left_out or found.counterexample.fault == "no accepted are reported on some paths"


def chained(s):
    """Decode with two drafts a round; return the new tokens and the number of accepted drafts of each round."""
    new, accepted = (), []
    while len(new) < s.horizon:
        text, drafts = s.prompt + new, ()
        for _ in range(2):
            drafts += (int(np.random.choice(s.vocabulary, p=s.draft(text + drafts))),)
        count = 0
        for token in drafts:
            p, q = s.target(text), s.draft(text)
            if np.random.random() >= p[token] / q[token]:
                left = np.maximum(p - q, 0)
                left = left if left.sum() > 0 else p
                text += (int(np.random.choice(s.vocabulary, p=left / left.sum())),)
                break
            text, count = (*text, token), count + 1
        else:
            text += (int(np.random.choice(s.vocabulary, p=s.target(text))),)
        new, accepted = text[len(s.prompt) :], [*accepted, count]
    return new[: s.horizon], accepted


def vllm_block(s, new, accepted, longer):
    counts = {"acceptance_histogram": {str(c + longer): accepted.count(c) for c in set(accepted)}}
    counts |= {"num_spec_steps": len(accepted), "num_draft_tokens": 2 * len(accepted)}
    block = {"num_accepted_draft_tokens": sum(accepted), "mean_acceptance_length": 1 + sum(accepted) / len(accepted)}
    return SimpleNamespace(outputs=[SimpleNamespace(token_ids=list(new), spec_decode_metrics=counts | block)])


def sglang_facts(s, new, accepted, longer):
    histogram = [accepted.count(count) for count in range(3)]
    facts = {"spec_num_correct_drafts": sum(accepted), "spec_num_proposed_drafts": 2 * len(accepted)}
    facts |= {"spec_verify_ct": len(accepted), "spec_correct_drafts_histogram": [0] * longer + histogram}
    return {"output_ids": list(new), "meta_info": facts}


def prediction_tokens(s, new, accepted, longer):
    """The counts of OpenAI's predicted outputs; the fault: all drafts are rejected ones."""
    rejected = 2 * len(accepted) - (0 if longer else sum(accepted))
    details = {"accepted_prediction_tokens": sum(accepted), "rejected_prediction_tokens": rejected}
    return {"tokens": new, "drafted": 2 * len(accepted), "usage": {"completion_tokens_details": details}}


FORMS = {
    vllm_block: ("accepted", "drafted", "rounds", "tokens_per_round", "acceptance_histogram"),
    sglang_facts: ("accepted", "drafted", "rounds", "acceptance_histogram"),
    prediction_tokens: ("accepted", "rejected", "drafted"),
}


SMALL = {"generic-v2-p010-h2-s0", "zeros-v3-p010-h3-s4", "point_draft-v3-p010-h3-s8"}
"""Scenarios in which two drafts a round have few paths."""


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("longer", [0, 1])
@pytest.mark.parametrize("form", FORMS)
def test_statistics_are_read_in_the_forms_of_engines(form, longer):
    engines = answering_made(lambda s: lambda: form(s, *chained(s), longer), FORMS[form])
    found = [examine(one, dict.fromkeys(FORMS[form]), Conditions()) for one in engines if one.name in SMALL]
    assert [(one.failed, one.unknown) for one in found] == [(bool(longer), False)] * len(SMALL), found


def test_a_histogram_with_other_keys_is_no_histogram():
    report = {"acceptance_histogram": {"none": 1}}
    found = verdict(lambda s: lambda: (plain(s, s.horizon), report), ("acceptance_histogram",))
    assert found.status == "refuted"
    assert "expected the number of rounds" in found.counterexample.fault


PARTS = {
    "of the answer": ({"completion_tokens": 2, "reasoning_tokens": 2}, "holds"),
    "behind the end": ({"completion_tokens": 2, "reasoning_tokens": 3}, "refuted"),
    "without the whole": ({"output_tokens_details": {"reasoning_tokens": 3}}, "refuted"),
    "of the prompt": ({"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}, "refuted"),
    "of a prompt that is not counted": ({"prompt_tokens_details": {"cached_tokens": 5}}, "holds"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_usage_is_not_more_than_the_whole(part):
    usage_of_all, status = PARTS[part]

    def sample(seed, n):
        rows = np.random.default_rng(seed).integers(0, 2, (n, 2)).tolist()
        return {"tokens": rows, "usage": [usage_of_all] * n}

    law = {(a, b): 0.25 for a in range(2) for b in range(2)}
    found = check_sampler(sample, law=law, returns=("usage",), on_fail=None, tv=0.3)
    assert {v.check: v.status for v in found}["values_match"] == status


def drafting(s, extra=0):
    """Each round drafts one token from q, and tests it; ``extra`` drafts are counted in each round beside it."""
    new, drafted = (), 0
    while len(new) < s.horizon:
        text = s.prompt + new
        p, q = np.asarray(s.target(text), float), np.asarray(s.draft(text), float)
        token, drafted = int(np.random.choice(len(q), p=q)), drafted + 1 + extra
        if np.random.random() >= p[token] / q[token]:
            left = np.maximum(p - q, 0)
            token = int(np.random.choice(len(p), p=left / left.sum()))
        new += (token,)
    return new, {"drafted": drafted}


def test_drafts_beyond_the_queries_are_unknown():
    wrong = verdict(lambda s: Made(lambda: drafting(s, extra=1)), ("drafted",))
    assert wrong.status == "unknown"
    assert "calls of the draft model give at most" in wrong.statement
    assert verdict(lambda s: Made(lambda: drafting(s)), ("drafted",)).status == "holds"


@pytest.mark.parametrize(("added", "status"), [(1e-12, "holds"), (1e-7, "refuted")])
def test_a_number_that_an_improbable_draw_makes_impossible_is_a_note(added, status):
    """A number that is added to p and q against division by 0 accepts drafts that p excludes, once in 1e12 drafts."""

    def decode(s):
        new, accepted = (), 0
        while len(new) < s.horizon:
            p, q = (np.asarray(model(s.prompt + new), float) for model in (s.target, s.draft))
            token = int(np.random.choice(len(q), p=q))
            if kept := np.random.random() < (p[token] + added) / (q[token] + added):
                accepted += 1
            left = np.maximum(p - q, 0)
            new += (token if kept else int(np.random.choice(len(p), p=left / left.sum())),)
        return new, {"accepted": accepted}

    make = lambda s: Made(lambda: decode(s))  # noqa: E731
    answering = next(one for one in answering_made(make, ("accepted",)) if one.name.startswith("disjoint"))
    found = examine(answering, {"accepted": None}, Conditions())
    assert found.failed == (status == "refuted")
    if status == "holds":
        (edge,) = found.figures["edges"]
        assert "drafts are reported as accepted" in edge["fault"]
        assert edge["probability"] < 1e-11
