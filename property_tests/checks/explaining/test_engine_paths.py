"""The roles of the draws of an engine."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from property_tests.checks.explaining.test_round_faults import choose, plain, warmer_target
from specverify.checks.explaining.engine_paths import KeptPaths, draws_of, with_pmfs
from specverify.checks.explaining.readings import Models
from specverify.checks.explaining.round_readings import reading_of
from specverify.laws.draws import AMONG, Decision
from specverify.laws.paths import Path, paths
from specverify.testing import SpeculationRefuted, check_decoder, check_engine
from test_support.checks.recorded_rounds import coin, model, read, token

TARGET = ((0.2, 0.3, 0.5), (0.5, 0.25, 0.25), (0.1, 0.8, 0.1))

DRAFT = ((0.6, 0.3, 0.1), (0.2, 0.4, 0.4), (0.3, 0.4, 0.3))


def appends_zero(last=0, length=2):
    new = [last]
    while len(new) <= length:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft, u = choose(q), random.random()
        new.append(draft if u < p[draft] / q[draft] else choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
        if u < 0.25:
            new.append(0)
    return new[1 : length + 1]


def bonus_from_q(last=0, length=3):
    new = [last]
    while len(new) <= length:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft = choose(q)
        if random.random() < p[draft] / q[draft]:
            new += [draft, choose(DRAFT[draft])]
        else:
            new.append(choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
    return new[1 : length + 1]


def streams_rejected(last=0, length=2):
    new = [last]
    while len(new) <= length:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft = choose(q)
        accepted = random.random() < p[draft] / q[draft]
        new.append(draft)
        if not accepted:
            new.append(choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
    return new[1 : length + 1]


def goes_on_when_rejected(last=0, length=2):
    new = [last]
    while len(new) <= length:
        texts = [new[-1]]
        for _ in range(2):
            texts.append(choose(DRAFT[texts[-1]]))
        for before, draft in itertools.pairwise(texts):
            p, q = TARGET[before], DRAFT[before]
            kept = random.random() < p[draft] / q[draft]
            new.append(draft if kept else choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
    return new[1 : length + 1]


def leaves_out_rare(last=0, length=2):
    new = [last]
    while len(new) <= length:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft = choose(q)
        if q[draft] < 0.35:
            new.append(choose(p))
        elif random.random() < p[draft] / q[draft]:
            new.append(draft)
        else:
            new.append(choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
    return new[1 : length + 1]


def more_of_the_draft_again(last=0, length=2, factor=2.0):
    new = [last]
    while len(new) <= length:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft = choose(q)
        if random.random() < p[draft] / q[draft]:
            new += [draft, choose([mass * factor ** (token == draft) for token, mass in enumerate(TARGET[draft])])]
        else:
            new.append(choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
    return new[1 : length + 1]


def less_of_the_draft_again():
    return more_of_the_draft_again(factor=0.5)


def test_the_draws_of_an_engine_are_given_their_roles():
    reading = read([token(1, 0.2, 0.8), coin(0.625, 1.0), token(0, 0.5, 0.5), coin(0.0, 0.5)], (0, 0))
    assert reading.fault == ""
    assert reading.words == (
        "drafted 1 (q = 0.8, e.py:1), rejected (u >= 0.625, e.py:2), replaced by 0",
        "drafted 0 (q = 0.5, e.py:1), accepted (u < 0.5, e.py:2)",
    )


def test_paths_that_are_known_are_not_run_again():
    known = list(paths(lambda draws: draws.categorical([0.25, 0.75], ("coin",))))
    kept = KeptPaths(pytest.fail, known)
    assert list(kept) == known
    assert kept.heaviest(lambda _: 1, 1) == [(0.75, known[1])]


def test_a_draw_by_an_argmax_over_noise_has_a_line_and_a_whole_pmf():
    decision = Decision(("race", "jax.random.gumbel", "e.py:3", 1), (0.75, 0.25), 0)
    (item,) = with_pmfs([], draws_of([decision]), 3, {})
    assert (item.is_lookup, item.place, item.pmf) == (True, "e.py:3", (0.75, 0.25, 0.0))


def test_draws_that_cannot_be_rounds_are_not_read():
    assert read([coin(0.25, 0.75)], (0, 0)) is None
    several = [token(0, 0.9, 0.1), coin(0.0, 0.1)] * 5
    assert read(several, (0, 1)) is None


def test_queries_tell_the_round_of_a_draw():
    certain = {(0,): (0.0, 1.0), (0, 1): (0.5, 0.5)}
    items = [coin(0.0, 0.5)._replace(before=(0,))]
    queries = ((0, "draft", (0,)), (0, "target", (0,)), (0, "draft", (0, 1)), (1, "target", (0, 1)))
    models = Models(model(certain), model({(0,): (0.0, 1.0), (0, 1): (1.0, 0.0)}), (0,), 2, (), queries)
    reading = reading_of(items, models, (1, 0))
    assert reading.words == ("drafted 1, accepted", "drafted 0, accepted (u < 0.5, e.py:2)")
    assert reading.fault == ""


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("fast", "length", "said"),
    [
        (
            appends_zero,
            2,
            ": 2 new tokens come from the draws of 1 token (drew 0 from (0.6, 0.3, 0.1) (test_round_faults.py:",
        ),
        (bonus_from_q, 3, ": the token after accepted drafts, new token 2, is drawn from q = ("),
        (streams_rejected, 2, ": the rejected draft 1 (0) is emitted, and its replacement after it"),
        (goes_on_when_rejected, 2, "the round goes on with draft 2 ("),
        (leaves_out_rare, 2, ": draft 1 is left out after it is drawn (test_"),
        (more_of_the_draft_again, 2, " alone, which is new token 1, as if a penalty did not count it"),
        (less_of_the_draft_again, 2, " alone, which is new token 1, as if a penalty counted it too often"),
        (warmer_target, 2, ": p has a further temperature of 2: draft "),
    ],
)
def test_what_the_draws_of_an_engine_show_is_in_the_first_line(fast, length, said):
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(fast, lambda: plain(length=length), checks=["law_is_target"])
    assert said in str(raised.value).splitlines()[0]


def repeats_its_token():
    """Return one drawn token twice."""
    return [choose((0.6, 0.3, 0.1))] * 2


def accepts_half():
    """Return a certain token, and one that is drawn from either of two rows."""
    draft = choose((0.2, 0.4, 0.4))
    return [0, draft if random.random() < 0.5 else choose((0.6, 0.3, 0.1))]


@pytest.mark.parametrize(
    ("fast", "first", "said"),
    [
        (
            repeats_its_token,
            (0.6, 0.3, 0.1),
            "new token 2 is 0 without a draw, expected a draw from p = (0.6, 0.3, 0.1)",
        ),
        (accepts_half, (1.0, 0.0, 0.0), ""),
    ],
)
def test_a_certain_token_needs_no_draw(fast, first, said):
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(fast, lambda: [choose(first), choose((0.6, 0.3, 0.1))], checks=["law_is_target"])
    line = str(raised.value).splitlines()[0]
    assert said in line
    assert bool(said) == (" without a draw" in line or "come from the draws" in line)


@pytest.mark.parametrize("accepting", [0, 1])
def test_the_outcome_that_accepts_is_seen_from_what_follows(accepting):
    def one_round(draws, target, draft, tokens):
        q = draft(tokens)
        drafts = [draws.categorical(q, ("draft", 0))]
        drafts.append(draws.categorical(draft((*tokens, *drafts)), ("draft", 1)))
        for i, x in enumerate(drafts):
            p, q_here = target((*tokens, *drafts[:i])), draft((*tokens, *drafts[:i]))
            ratio = min(Fraction(1), p[x] / (q[x] or q_here[x]))  # wrong: q of the first draft
            test = [ratio, 1 - ratio] if accepting == 0 else [1 - ratio, ratio]
            if draws.categorical(test, ("accept", i)) != accepting:
                left = np.maximum(p - q_here, 0)
                return *drafts[:i], draws.categorical(left / left.sum() if left.sum() else p, ("residual", i))
        return *drafts, draws.categorical(target((*tokens, *drafts)), ("bonus",))

    with pytest.raises(SpeculationRefuted, match="drafts are accepted by the row of q one position early"):
        check_decoder(one_round, checks=["law_is_target"], quick=True)


@pytest.mark.parametrize(
    ("weights", "outcome"),
    [((0.25, 0.0, 0.75), 2), ((0.75, 0.25, 0.0), None), ((0.25, 0.75), None)],
    ids=["tokens", "sorted", "fewer"],
)
def test_a_lookup_in_the_sums_of_all_tokens_gives_the_token(weights, outcome):
    """The entries of a sorted row are no tokens, and fewer sums than tokens are those of other indices."""
    last = max(index for index, mass in enumerate(weights) if mass > 0)

    def path(index):
        return [Decision(("random.random", "e.py:1", 1, AMONG, 1), (*weights, 0.0), index)]

    ends = [Path((), 1.0, (index,), tuple(path(index))) for index, mass in enumerate(weights) if mass > 0]
    (item,) = with_pmfs(ends, draws_of(path(last)), 3, {})
    assert (item.outcome, item.is_lookup) == (outcome, True)


RNG = np.random.default_rng()


def strikes_first_guess(model, text, length):
    """Decode with the tokens after the last earlier occurrence of the last token as drafts."""
    text, end = list(text), len(text) + length
    while len(text) < end:
        same = [i for i in range(len(text) - 1) if text[i] == text[-1]]
        guesses = text[same[-1] + 1 :][: min(2, end - len(text) - 1)] if same else []
        rows = [np.asarray(model((*text, *guesses[:i])), dtype=float) for i in range(len(guesses) + 1)]
        new = []
        for p, guess in zip(rows, guesses, strict=False):
            if RNG.random() >= p[guess]:
                left = np.where(np.arange(len(p)) == guesses[0], 0, p)
                new.append(int(RNG.choice(len(p), p=(left if left.any() else p) / (left.sum() or p.sum()))))
                break
            new.append(guess)
        else:
            new.append(int(RNG.choice(len(rows[-1]), p=rows[-1] / rows[-1].sum())))
        text += new
    return text[-length:]


def test_a_draft_without_a_draw_has_no_number_and_its_replacement_is_drawn():
    """A draft before it may be certain, so that it is not known to be the first one of its round."""
    with pytest.raises(SpeculationRefuted) as refuted:
        check_engine(
            lambda scenario: lambda prompt: strikes_first_guess(scenario.target, prompt, scenario.horizon),
            checks=["law_is_target"],
            quick=True,
        )
    said = str(refuted.value)
    assert ": the draft 2 after (2, 0, 0, 2, 1, 2, 1) is rejected and replaced by a draw from (0.2, 0, 0.8) = " in said
    assert " = p without token 1 (" in said
    assert "chosen without a draw" not in said
    assert "q = " not in said


def cut(row):
    least = sorted(row)[-2]
    return [mass if mass >= least else 0.0 for mass in row]


def cuts_rows(model, draft, text, length):
    """Decode with one draft a round; both models are cut to their two largest entries."""
    text, end = list(text), len(text) + length
    while len(text) < end:
        p, q = (cut([float(mass) for mass in one(tuple(text))]) for one in (model, draft))
        p, q = ([mass / sum(row) for mass in row] for row in (p, q))
        token = random.choices(range(len(q)), q)[0]
        if random.random() * q[token] >= p[token]:
            token = random.choices(range(len(p)), [max(a - b, 0) for a, b in zip(p, q, strict=True)])[0]
        text.append(token)
    return text[-length:]


def test_a_law_of_a_truncated_p_is_named_before_the_row_of_the_drafts():
    with pytest.raises(SpeculationRefuted) as refuted:
        check_engine(
            lambda s: lambda prompt: cuts_rows(s.target, s.draft, prompt, s.horizon),
            checks=["law_is_target"],
            quick=True,
        )
    said = ": every new token has the law of p cut to its 2 largest entries (as by top-k or top-p), expected p"
    assert said in str(refuted.value)
