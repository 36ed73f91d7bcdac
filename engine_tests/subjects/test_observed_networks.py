"""An engine over torch_network whose passes an observer reads without further arguments."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import drafts_of
from specverify.testing import Made, Observer, torch_network

GAMMA = 2
CHECKS = ("draft_is_honest", "acceptance_law", "cache_equals_prefill")
FEW = 4


class Cached:
    """A network and its cache, which is fed the tokens of a text that it lacks."""

    def __init__(self, network):
        """Begin with an empty cache."""
        self.network, self.past, self.held = network, None, 0

    def rows(self, ids):
        """Return the pmfs after the last tokens of ``ids`` that the cache lacked."""
        out = self.network(ids[:, self.held :], past_key_values=self.past)
        self.past, self.held = out.past_key_values, ids.shape[1]
        return torch.softmax(out.logits[0], -1)

    def crop(self, length):
        """Keep the first ``length`` entries."""
        if length < self.held:
            self.past, self.held = tuple(tuple(kind[:, :, :length] for kind in layer) for layer in self.past), length


def engine(scenario, *, prefilled, stale):
    models = scenario.target, scenario.draft
    networks = [torch_network(model, scenario.vocabulary, cache="tuple") for model in models]

    @torch.no_grad()
    def decode():
        target, draft = map(Cached, networks)
        ids, end = torch.tensor([list(scenario.prompt)]), len(scenario.prompt) + scenario.horizon
        if prefilled and ids.shape[1] > 1:
            target.rows(ids[:, :-1])
        while ids.shape[1] < end:
            text, q = ids, []
            for _ in range(min(GAMMA, end - ids.shape[1] - 1)):
                q.append(draft.rows(text)[-1])
                text = torch.cat([text, torch.multinomial(q[-1], 1)[None]], 1)
            p = target.rows(text)[-len(q) - 1 :]
            kept = 0
            while (
                kept < len(q)
                and torch.rand(()) < p[kept, text[0, ids.shape[1] + kept]] / q[kept][text[0, ids.shape[1] + kept]]
            ):
                kept += 1
            row = p[kept] if kept == len(q) else (p[kept] - q[kept]).clamp(min=0)
            ids = torch.cat([text[:, : ids.shape[1] + kept], torch.multinomial(row / row.sum(), 1)[None]], 1)
            target.crop(ids.shape[1] - 1)
            if stale:
                draft.held = min(draft.held, ids.shape[1] - 1)
            draft.crop(ids.shape[1] - 1)
        return ids[0, len(scenario.prompt) :]

    observer = Observer(scenario.prompt, draft=scenario.draft, target=networks[0])
    return Made(decode, observer=observer)


def statuses(**how):
    subject = made_subject(lambda scenario: engine(scenario, **how), "it")
    few = subject.with_programs(subject.programs[:FEW])
    return {name: run_check(few, check_named(name), Checklist(())) for name in CHECKS}


@pytest.mark.parametrize("prefilled", [True, False])
def test_a_prompt_may_be_prefilled_but_for_its_last_token(prefilled):
    found = statuses(prefilled=prefilled, stale=False)
    assert {verdict.status for verdict in found.values()} == {"holds"}, found


def test_drafts_from_a_cache_that_keeps_rejected_ones_are_refuted():
    found = statuses(prefilled=True, stale=True)
    assert found["draft_is_honest"].status == "refuted", found
    assert found["cache_equals_prefill"].status == "holds"


def test_a_network_without_a_cache_is_fed_emitted_tokens_again():
    network = torch_network(lambda tokens: np.array([0.5, 0.5]), 2, cache=None)
    observer = Observer((0,), target=network)
    with observer.hooked():
        network(torch.tensor([[0, 1, 1]]))
        network(torch.tensor([[0, 1, 0, 1]]))
    assert [drafts_of(one, (0,)) for one in observer.forwards] == [(1, 1), (1,)]
