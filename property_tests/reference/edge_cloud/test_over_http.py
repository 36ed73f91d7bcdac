"""Edge and cloud as two processes that talk over HTTP."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from reference import Sampled, Task
from reference.algorithms import clamped_scalar_residual
from reference.edge_cloud.link import rebuilt
from reference.edge_cloud.messages import VerifiedReply, Verify
from reference.edge_cloud.over_http import HttpLink, Journal
from reference.edge_cloud.wire import decode, encode
from specverify.laws.law import target_law
from specverify.statistics import FitVerdict, confirmed_fit, goodness_of_fit, samples_for, stage_level
from test_support.laws.rational import distance
from test_support.reference.edge_cloud_processes import Running, http_draft, http_session, http_target


@pytest.mark.thorough
def test_over_http_the_sample_fits_and_a_wrong_mode_is_rejected():
    """False alarm 1e-6, every law at TV 0.15 refuted but for 1e-3; the clamped residual is at least that far away."""
    law = target_law(Task(http_target, http_draft, horizon=2), (0,))
    false_alarm, miss, level = 1e-6, 1e-3, stage_level(1e-6)
    biased = clamped_scalar_residual.declared_law(Task(http_target, http_draft, horizon=2), (0,), 1)
    assert distance(biased, law) > 0.15
    number = samples_for(law, 0.15, level, miss / 2)
    running = Running()
    link = HttpLink(running.address)

    def sampled(mode, count, seed):
        draws = Sampled(seed)
        return Counter(http_session(link, draws, mode, f"{mode}/{seed}/{i}") for i in range(count))

    try:
        fit = confirmed_fit(
            partial(sampled, "two-phase"), law, samples=number, false_alarm=false_alarm, miss=miss, seed=7
        )
        wrong = goodness_of_fit(sampled("scalar-q", number, 8), law)
    finally:
        link.close()
        running.stop()
    assert fit.verdict is FitVerdict.FITS
    assert fit.control
    assert fit.detectable_tv <= 0.15
    assert wrong.p_value < level
    assert running.starts == 1


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(("fault", "at"), [("model", 5), ("before", 3), ("after", 3)])
def test_over_http_a_server_killed_in_mid_round_goes_on(tmp_path, fault, at):
    """It dies while it verifies, before its reply is written down, or with the reply written down and unsent."""
    running = Running(tmp_path / "journal", fault, at)
    link = HttpLink(running.address, timeout=20)
    try:
        new = http_session(link, Sampled(3), "sparse-q", "0", horizon=12, gamma=3)
    finally:
        link.close()
        running.stop()
    assert running.starts == 2
    assert len(new) == 12
    pairs = Journal(tmp_path / "journal").pairs
    assert rebuilt(pairs)["0"].tokens == (0, *new)
    rounds = [decode(said) for _, said in pairs if isinstance(decode(said), VerifiedReply)]
    drafts = [decode(asked).draft for asked, said in pairs if isinstance(decode(said), VerifiedReply)]
    text = [(*draft[: reply.accepted], reply.token) for draft, reply in zip(drafts, rounds, strict=True)]
    assert sum(text, ()) == new
    assert [reply.known for reply in rounds] == [1 + sum(map(len, text[:i])) for i in range(len(text))]


REQUEST = Verify("0", 0, 1, (0,), (0.6,), ())


def test_over_http_what_is_no_request_is_answered_by_one_sentence():
    running = Running()
    link = HttpLink(running.address)
    try:
        with pytest.raises(ValueError, match=r"the server answered 400: .* is not a message, expected one of open"):
            link("{}")
        assert decode(link(encode(REQUEST))[0]).reason == "unknown"
    finally:
        link.close()
        running.stop()
