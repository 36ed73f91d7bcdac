"""Rows of a batch whose top-k and top-p differ, in verifiers and engines that confuse those of a part of the rows."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.checks.check import Conditions
from specverify.checks.law_is_target import CHECK as LAW
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.subjects.engine_factories import WithParameters
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import FOUR_TOKENS_OPEN, OPEN_BESIDE_LAST_TOKENS
from specverify.testing import Made, SpeculationRefuted, check_verifier

RNG = np.random.default_rng()


def warped(logits, temperature, top_k, top_p):
    """Return the pmfs of the rows ``logits``; the one-hot pmf of the largest logit at temperature 0."""
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(-1)]
    pmfs = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
    result = []
    for pmf in pmfs:
        order = np.argsort(-pmf, kind="stable")[:top_k]
        before = (np.cumsum(pmf[order]) - pmf[order]) / pmf[order].sum()
        kept = order[before < top_p]
        row = np.zeros_like(pmf)
        row[kept] = pmf[kept]
        result.append(row / row.sum())
    return np.array(result)


def verifier(confuse):
    """Return a verifier of batches; ``confuse(values, neutral)`` returns the top-k or top-p that the rows get."""

    def verify(target_logits, draft_logits, draft_tokens, lengths, temperatures, top_ks, top_ps):
        size, answer = target_logits.shape[-1], []
        each = zip(temperatures, confuse(top_ks, size), confuse(top_ps, 1.0), strict=True)
        for row, (temperature, top_k, top_p) in enumerate(each):
            p = warped(target_logits[row], temperature, top_k, top_p)
            drafts = draft_tokens[row, : lengths[row]]
            q = warped(draft_logits[row], temperature, top_k, top_p)
            kept = 0
            while kept < len(drafts) and RNG.random() * q[kept, drafts[kept]] < p[kept, drafts[kept]]:
                kept += 1
            left = p[kept] if kept == len(drafts) else np.maximum(p[kept] - q[kept], 0)
            left = left if left.sum() > 0 else p[kept]
            answer.append([*drafts[:kept], RNG.choice(size, p=left / left.sum())])
        return answer

    return verify


def of_the_others(values, neutral):
    """Return ``values`` with the largest that restricts a row in place of the neutral value."""
    narrow = [value for value in values if value < neutral]
    return [value if value < neutral or not narrow else max(narrow) for value in values]


def test_a_row_without_truncation_beside_rows_with_one_keeps_all_tokens():
    options = {"quick": True, "checks": ["law_is_target"], "gammas": (1,), "form": "batched_logits"}
    check_verifier(verifier(lambda values, _: values), **options)
    with pytest.raises(SpeculationRefuted, match="with other sampling parameters"):
        check_verifier(verifier(of_the_others), **options)


def cut(row, top_k):
    """Return weights of the ``top_k`` most probable tokens of ``row``; of all if it is None."""
    least = sorted(row)[-min(top_k or len(row), len(row))]
    weights = [float(mass) * (mass >= least) for mass in row]
    return [weight / sum(weights) for weight in weights]


def drawn(weights):
    return random.choices(range(len(weights)), weights)[0]


class Engine:
    """An engine of batches whose rows have a top-k each.

    ``of_rows(top_ks, order)`` are the top-k of its rows of p, whose requests are ``order``: those with fewer drafts
    come first.
    """

    def __init__(self, scenario, of_rows, drafts):
        """Take the models of ``scenario``, and the number of drafts of a round."""
        self.scenario, self.of_rows, self.drafts = scenario, of_rows, drafts

    def speculative(self, prompts, top_ks):
        horizon, new = self.scenario.horizon, [() for _ in prompts]
        while live := [n for n, text in enumerate(new) if len(text) < horizon]:
            texts = {n: (*prompts[n], *new[n]) for n in live}
            drafted = {n: self.draft(texts[n], top_ks[n], horizon - len(new[n])) for n in live}
            live.sort(key=lambda n: len(drafted[n]))
            given = iter(self.of_rows(top_ks, [n for n in live for _ in range(len(drafted[n]) + 1)]))
            for n in live:
                new[n] += self.verified(texts[n], drafted[n], given)
        return new

    def draft(self, text, top_k, left):
        result = []
        for _ in range(min(self.drafts, left - 1)):
            q = cut(self.scenario.draft((*text, *(token for token, _ in result))), top_k)
            result.append((drawn(q), q))
        return result

    def verified(self, text, drafted, given):
        tokens = tuple(token for token, _ in drafted)
        p = [cut(self.scenario.target((*text, *tokens[:k])), next(given)) for k in range(len(tokens) + 1)]
        for k, (token, q) in enumerate(drafted):
            if random.random() * q[token] >= p[k][token]:
                left = [max(wanted - drafts, 0) for wanted, drafts in zip(p[k], q, strict=True)]
                return (*tokens[:k], drawn(left if any(left) else p[k]))
        return (*tokens, drawn(p[-1]))

    def plain(self, prompts, top_ks):
        new = [() for _ in prompts]
        for n, top_k in enumerate(top_ks):
            while len(new[n]) < self.scenario.horizon:
                new[n] += (drawn(cut(self.scenario.target((*prompts[n], *new[n])), top_k)),)
        return new


def engine(parameters, of_rows, drafts):
    """Return the factory of an engine whose requests have ``parameters``."""

    def make(scenario):
        made = Engine(scenario, of_rows, drafts)
        return Made(made.speculative, made.plain, batched=True, parameters=parameters)

    return WithParameters(make)


def own(top_ks, order):
    return [top_ks[n] for n in order]


def largest_of_all(top_ks, order):
    given = [top_ks[n] for n in order]
    return [top_k or max(filter(None, given), default=None) for top_k in given]


def of_unsorted_rows(top_ks, order):
    """The top-k of the rows in the order of the requests, with as many rows each as they have."""
    return [top_ks[n] for n in sorted(order)]


def law_of(make, name):
    """Return the result of the check of laws in the batch ``name``."""
    (case,) = (case for case in LAW.cases(made_subject(make, "it")) if case.situation.name == name)
    return case.examine(Conditions(explained=False))


@pytest.mark.parametrize("top_k", [2, 3])
def test_four_tokens_show_a_top_k_of_two_or_three_that_another_row_gets(top_k):
    assert law_of(engine((None, top_k), largest_of_all, drafts=1), FOUR_TOKENS_OPEN.name).failed
    assert not law_of(engine((None, top_k), own, drafts=1), FOUR_TOKENS_OPEN.name).failed


@pytest.mark.parametrize("drafts", [1, 2])
def test_rows_that_are_sorted_by_their_drafts_keep_their_top_k(drafts):
    name = OPEN_BESIDE_LAST_TOKENS.name
    assert law_of(engine((None, 2), of_unsorted_rows, drafts), name).failed
    held = law_of(engine((None, 2), own, drafts), name)
    assert not held.failed
    assert not held.unknown


@pytest.mark.parametrize(("parameters", "is_told"), [((None, 2), False), ((None, 7), True)])
def test_parameters_that_make_no_difference_are_told(parameters, is_told):
    seen = law_of(engine(parameters, own, drafts=1), f"{SCENARIOS[0].name}, parameters 2")
    told = "parameters 1 and 2 give all texts the same probability in short cases"
    assert any(note.startswith(told) for note in seen.figures["notes"]) == is_told
