"""When a draft may end: any rule that keeps the drawn token is exact, one that drops a token because of it is not.

Rules are small drafters put into the ordinary round; laws are enumerated, so exact means equal as rationals.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import (
    Drafter,
    Draws,
    LengthRule,
    Plan,
    Task,
    Verified,
    accept_probability,
    chain,
    chain_decoder,
    constant,
    excess_law,
    flip,
    model_drafter,
    overlap,
    residual,
    total_variation,
)
from reference.coupling import positive_part
from reference.lengths.constant import never
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import pmf_pairs, prompts, tasks
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, as_law, distance, examples, law_of, pmf, project, vector

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)
pairs = st.integers(2, 4).flatmap(pmf_pairs)


def stopping_drafter(task, before=lambda p, q: False, after=lambda p, q, token: False):
    """Draft from q; draw nothing where ``before(p, q)``, nothing further where ``after(p, q, token)``."""

    def propose(draws, state, prefix, gamma, stop_after):
        tokens, rows = (), ()
        while len(tokens) < gamma:
            p, q = task.target(prefix + tokens), task.draft(prefix + tokens)
            if before(p, q):
                break
            tokens, rows = (*tokens, draws.categorical(q, ("draft", len(tokens)))), (*rows, q)
            if after(p, q, tokens[-1]):
                break
        return chain(tokens, rows)

    return Drafter(init=lambda prompt: None, propose=propose, observe=lambda *_: None)


def trimmed_drafter(task, keep):
    """Draft from q, then keep the first ``keep(draft, rows of p)`` tokens."""
    inner = model_drafter(task.draft)

    def propose(draws, state, prefix, gamma, stop_after):
        draft = inner.propose(draws, state, prefix, gamma, never)
        count = keep(draft, [task.target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens))])
        return chain(draft.tokens[:count], draft.pmfs[:count])

    return inner._replace(propose=propose)


def law_with(task, prompt, drafter, rule=None, verify=speculative_sampling):
    return decoder_law(chain_decoder(task, drafter, rule or constant(2), verify), prompt).probabilities


# Exact: the token stays, or was never drawn

BEFORE = {
    "the largest entry of q": lambda p, q: max(q) < HALF,
    "the largest entry of p": lambda p, q: max(p) < HALF,
    "the distance of p and q": lambda p, q: total_variation(p, q) > THIRD,
}
AFTER = {
    "its q": lambda p, q, token: q[token] < THIRD,
    "its p": lambda p, q, token: p[token] < THIRD,
    "its ratio": lambda p, q, token: p[token] < HALF * q[token],
    "its identity": lambda p, q, token: token == 0,
}


@pytest.mark.parametrize("name", BEFORE)
@examples(30)
@given(task=tasks(3, 2, 3), prompt=prompts(3))
def test_stopping_before_a_token_is_drawn_is_exact(name, task, prompt):
    assert law_with(task, prompt, stopping_drafter(task, before=BEFORE[name])) == target_law(task, prompt)


@pytest.mark.parametrize("name", AFTER)
@examples(30)
@given(task=tasks(3, 2, 3), prompt=prompts(3))
def test_stopping_after_a_token_that_is_kept_is_exact(name, task, prompt):
    assert law_with(task, prompt, stopping_drafter(task, after=AFTER[name])) == target_law(task, prompt)


@examples(30)
@given(tasks(3, 2, 3), prompts(3))
def test_a_length_read_from_the_context_is_exact(task, prompt):
    rule = LengthRule(None, lambda state, prefix: Plan(sum(prefix) % 3, state), never, lambda state, *_: state)
    assert law_with(task, prompt, model_drafter(task.draft), rule) == target_law(task, prompt)


class Revealed(NamedTuple):
    """Answers acceptance coins from those flipped while drafting, everything else from ``inner``."""

    inner: Draws
    coins: list[int]

    def categorical(self, row, site):
        """Return the coin, or what ``inner`` draws."""
        if site[0] == "accept" and site[1] < len(self.coins):
            return self.coins[site[1]]
        return self.inner.categorical(row, site)


@pytest.mark.parametrize("ends", [0, 1], ids=["after an accepted token", "after a rejected token"])
@examples(30)
@given(task=tasks(3, 2, 3), prompt=prompts(3))
def test_stopping_after_a_token_because_of_its_own_coin_is_exact(ends, task, prompt):
    """The coin is flipped while drafting, decides whether drafting goes on, and is the one verification uses."""
    coins = []

    def propose(draws, state, prefix, gamma, stop_after):
        coins.clear()
        tokens, rows = (), ()
        while len(tokens) < gamma and ends not in coins:
            p, q = task.target(prefix + tokens), task.draft(prefix + tokens)
            token = draws.categorical(q, ("draft", len(tokens)))
            coins.append(0 if flip(draws, accept_probability(p, q, token), ("coin", len(tokens))) else 1)
            tokens, rows = (*tokens, token), (*rows, q)
        return chain(tokens, rows)

    def verify(draws, target, prefix, draft):
        return speculative_sampling(Revealed(draws, coins), target, prefix, draft)

    drafter = model_drafter(task.draft)._replace(propose=propose)
    assert law_with(task, prompt, drafter, verify=verify) == target_law(task, prompt)


# Dropping drawn tokens

DROPPING = {
    "the last because of its q": lambda draft, rows: len(draft.tokens) - (draft.pmfs[-1][draft.tokens[-1]] < THIRD),
    "the last because of its p": lambda draft, rows: len(draft.tokens) - (rows[-1][draft.tokens[-1]] < THIRD),
    "the last because of its ratio": lambda draft, rows: (
        len(draft.tokens) - (rows[-1][draft.tokens[-1]] < HALF * draft.pmfs[-1][draft.tokens[-1]])
    ),
    "all because of the q of the first": lambda draft, rows: (
        0 if draft.pmfs[0][draft.tokens[0]] < THIRD else len(draft.tokens)
    ),
}
HARMLESS = {
    "the second because of the q of the first": lambda draft, rows: 1 if draft.pmfs[0][draft.tokens[0]] < THIRD else 2,
    "the second because of the largest entry of its q": lambda draft, rows: (
        1 if len(draft.tokens) == 2 and max(draft.pmfs[1]) < HALF else 2
    ),
}


def trim(keep):
    return lambda draft, rows: keep(draft, rows) if draft.tokens else 0


@pytest.mark.parametrize("name", HARMLESS)
@examples(30)
@given(task=tasks(3, 2, 3), prompt=prompts(3))
def test_dropping_a_token_for_reasons_known_before_it_is_exact(name, task, prompt):
    assert law_with(task, prompt, trimmed_drafter(task, trim(HARMLESS[name]))) == target_law(task, prompt)


@pytest.mark.parametrize("name", DROPPING)
@pytest.mark.parametrize("seed", [0, 1])
def test_dropping_a_token_because_of_itself_is_biased(name, seed):
    """On these tables every rule drops something (with others a threshold may never be met)."""
    target, draft = table_pair("generic", 3, seed)
    task = Task(target, draft, horizon=3)
    found = law_with(task, (0, 1), trimmed_drafter(task, trim(DROPPING[name])))
    assert sum(found.values()) == 1
    assert distance(found, target_law(task, (0, 1))) > 0


def dropping_law(p, q, dropped):
    """The law of one drafted token that is dropped if it is in the set, after which p is sampled."""
    inside = pmf(*(token in dropped for token in range(len(p))))
    rejected = ((1 - inside) * positive_part(q - p)).sum()
    return (1 - inside) * (p - positive_part(p - q)) + (q * inside).sum() * p + rejected * residual(p, q)


def one_round_law(p, q, dropped, verify=speculative_sampling):
    task = Task(always(p), always(q), horizon=2)
    drafter = trimmed_drafter(task, trim(lambda draft, rows: int(draft.tokens[0] not in dropped)))
    decoder = chain_decoder(task, drafter, constant(1), verify)
    law = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].tokens)
    return project(law, lambda tokens: tokens[0])


def test_dropping_the_token_zero_has_its_known_law_and_bias():
    found = one_round_law(P, Q, {0})
    assert vector(found, 3) == pmf(".12", ".48", ".40").tolist()
    assert distance(found, as_law(P)) == Fraction("0.18")


@given(pairs, st.sets(st.integers(0, 3)))
def test_dropping_a_set_of_tokens_has_its_law_in_closed_form(pair, dropped):
    p, q = pair
    assert vector(one_round_law(p, q, dropped), len(p)) == dropping_law(p, q, dropped).tolist()


@given(pairs, st.sets(st.integers(0, 3)))
def test_dropping_is_exact_when_the_replacement_knows_what_can_be_kept(pair, dropped):
    """Dropped or rejected: emit from norm((p - q 1[kept set])+), where q is short of its dropped tokens."""
    p, q = pair
    kept = q * pmf(*(token not in dropped for token in range(len(q))))

    def verify(draws, target, prefix, draft):
        if draft.tokens and flip(draws, accept_probability(p, q, draft.tokens[0]), ("accept", 0)):
            return Verified((*draft.tokens, draws.categorical(p, ("bonus",))), accepted=1)
        return Verified((draws.categorical(excess_law(p, kept), ("residual", 0)),), accepted=0)

    assert one_round_law(p, q, dropped, verify) == as_law(p)


@given(pairs)
def test_dropping_nothing_accepts_as_often_as_the_coupling(pair):
    p, q = pair
    task = Task(always(p), always(q), horizon=2)
    decoder = chain_decoder(
        task, trimmed_drafter(task, lambda draft, rows: len(draft.tokens)), constant(1), speculative_sampling
    )
    law = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].accepted)
    assert law.get(1, 0) == overlap(p, q)
