"""Values beside the tokens: planted bugs of one engine that returns everything, and engines of unlike kinds."""

from functools import partial

import numpy as np
import pytest

from specverify.mutants.promising import VALUES, in_turn, returning, text_of
from specverify.testing import Made, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

ALL = {
    "logprobs": "raw",
    "top_logprobs": "processed",
    "cumulative_logprob": "processed",
    "scores": "processed",
    "prompt_logprobs": "raw",
    "text": text_of,
    "chunks": text_of,
    "snapshots": text_of,
    "finish_reason": None,
}


def verdicts(make, returns, **how):
    return {v.check: v for v in check_engine(make, returns=returns, on_fail=None, **{"quick": True, **how})}


def named(fault):
    name = VALUES[fault][0]
    return {name: ALL.get(name, "plain")}


@pytest.mark.thorough(keep=14)
@pytest.mark.parametrize("fault", VALUES)
def test_a_wrong_value_is_refuted(fault):
    value = verdicts(
        partial(returning, fault), named(fault), checks=["values_match"], quick=VALUES[fault][0] != "finish_reason"
    )
    assert value["values_match"].status == "refuted", value["values_match"]


@pytest.mark.thorough
def test_the_right_engine_holds_with_all_its_values():
    value = verdicts(partial(returning, ""), {**ALL, "processed_logprobs": "plain"}, checks=["values_match"])
    assert value["values_match"].status == "holds", value["values_match"]


def with_one_list(s, shared):
    """Return every request's log-probabilities in the same list, if ``shared``."""
    made, kept = in_turn("", s), []

    def decode(prompt):
        tokens, values = made.speculative(prompt)
        listed = kept if shared else []
        listed[:] = values["processed_logprobs"]
        return tokens, {"processed_logprobs": listed}

    return made._replace(speculative=decode)


@pytest.mark.parametrize("shared", [False, True])
def test_values_that_a_later_request_overwrites_are_refuted(shared):
    returns = {"processed_logprobs": "plain"}
    verdict = verdicts(partial(with_one_list, shared=shared), returns, checks=["values_match"])["values_match"]
    assert verdict.status == ("refuted" if shared else "holds")
    assert ("after a later call" in verdict.statement) == shared


def in_rounds(s, early):
    """Send a snapshot of the text after each round; ``early``: with the drafts that are not verified yet."""

    def decode():
        new, sent = (), []
        while len(new) < s.horizon:
            drafts = ()
            for _ in range(2):
                drafts += (int(np.random.choice(s.vocabulary, p=s.draft(s.prompt + new + drafts))),)
            if early:
                sent.append(text_of((new + drafts)[: s.horizon]))
            for token in drafts:
                p, q = s.target(s.prompt + new), s.draft(s.prompt + new)
                if np.random.random() >= p[token] / q[token]:
                    left = np.maximum(p - q, 0)
                    left = left if left.sum() > 0 else p
                    new += (int(np.random.choice(s.vocabulary, p=left / left.sum())),)
                    break
                new += (token,)
            sent.append(text_of(new[: s.horizon]))
        return new[: s.horizon], {"snapshots": sent}

    return decode


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("early", [False, True])
def test_a_stream_may_send_its_snapshots_at_any_length(early):
    found = verdicts(partial(in_rounds, early=early), {"snapshots": text_of}, checks=["values_match"])["values_match"]
    assert found.status == ("refuted" if early else "holds"), found
    assert not early or "withdraws" in found.counterexample.fault


def stopped_by(s, lost):
    """Return the end token of a text, or None if its length ended it; ``lost``: None beside a text of drafts too."""

    def decode(draft):
        new = ()
        while len(new) < s.horizon and s.eos not in new:
            new += (int(np.random.choice(s.vocabulary, p=s.target(s.prompt + new))),)
        return {"tokens": new, "stop_reason": s.eos if s.eos in new and not (draft and lost) else None}

    return Made(lambda: decode(draft=True), lambda: decode(draft=False), stops=True)


@pytest.mark.parametrize("lost", [False, True])
def test_a_reason_to_stop_may_be_none_where_it_is_for_the_plain_call(lost):
    found = verdicts(partial(stopped_by, lost=lost), ("stop_reason",), checks=["values_match"])["values_match"]
    assert found.status == ("refuted" if lost else "holds"), found
    assert not lost or "stop_reason = None, expected " in found.counterexample.fault


def with_last_logprob_of_the_row_before(s):
    def decode():
        new, logprobs, before = (), [], None
        while len(new) < s.horizon:
            row = s.target(s.prompt + new)
            new += (int(np.random.choice(s.vocabulary, p=row)),)
            mass = (row if before is None or len(new) < s.horizon else before)[new[-1]]
            logprobs.append(float(np.log(mass)) if mass > 0 else -np.inf)
            before = row
        return new, {"logprobs": logprobs}

    return Made(decode)


def test_a_case_that_tells_the_row_of_a_wrong_logprob_is_reported():
    """Of one-hot rows many give the logarithm -inf."""
    (found,) = verdicts(with_last_logprob_of_the_row_before, {"logprobs": "raw"}, checks=["values_match"]).values()
    assert "(that of the target's row as it is at new token 1), expected -" in found.counterexample.fault


def with_least_tokens(s, drafts, unmasked):
    """Texts of at least two tokens; with ``unmasked`` the logprob of an accepted draft is that of the raw row."""

    def masked(row, length):
        row = np.array(row, dtype=float)
        if s.eos is not None and length < 2 and row[s.eos] < 1:
            row[s.eos] = 0
        return row / row.sum()

    def decode(prompt):
        new, logprobs = (), []
        while len(new) < s.horizon and (not new or new[-1] != s.eos):
            raw = np.array(s.target(tuple(prompt) + new))
            row = p = masked(raw, len(new))
            token = int(np.random.choice(s.vocabulary, p=p))
            if drafts:
                q = masked(s.draft(tuple(prompt) + new), len(new))
                token = int(np.random.choice(s.vocabulary, p=q))
                if np.random.random() * q[token] < p[token]:
                    row = raw if unmasked else p
                else:
                    left = np.maximum(p - q, 0)
                    token = int(np.random.choice(s.vocabulary, p=left / left.sum()))
            new += (token,)
            logprobs.append(float(np.log(row[token])))
        return new, {"logprobs": logprobs}

    return decode


@pytest.mark.parametrize("unmasked", [False, True])
def test_in_quick_too_texts_that_may_end_at_random_show_a_row_without_its_mask(unmasked):
    def make(s):
        return Made(with_least_tokens(s, True, unmasked), with_least_tokens(s, False, False), stops=True)

    (found,) = verdicts(make, {"logprobs": "plain"}, checks=["values_match"]).values()
    assert found.status == ("refuted" if unmasked else "holds"), found
