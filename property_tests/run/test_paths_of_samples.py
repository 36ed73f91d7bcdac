"""The cause of a wrong law of samples, from the paths of one sample."""

from __future__ import annotations

import gc
import random
import socket
import warnings
from collections import Counter
from itertools import product

import numpy as np
import pytest

from specverify.base.verdict import Counterexample, Status, Verdict
from specverify.run.paths_of_samples import ExplainedSampler, _followed, explained_verdicts
from specverify.subjects.sampler import Sampler, drawn
from specverify.testing import SpeculationRefuted, check_sampler

P = {(): (0.5, 0.3, 0.2), (0,): (0.2, 0.5, 0.3), (1,): (0.6, 0.1, 0.3), (2,): (0.3, 0.3, 0.4)}
Q = {(): (0.4, 0.4, 0.2), (0,): (0.5, 0.2, 0.3), (1,): (0.3, 0.4, 0.3), (2,): (0.1, 0.6, 0.3)}
LAW = {(a, b): P[()][a] * P[(a,)][b] for a, b in product(range(3), repeat=2)}
SAMPLES = 1500
DIFFERENCE = "new token 1 is 0 too often"


def residual(p, q):
    return [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]


def sampler(*, accept=lambda p, q: p / q, rest=residual, bonus=None):
    def one(r):
        text = ()
        while len(text) < 2:
            p, q = P[text], Q[text]
            x = r.choices(range(3), q)[0]
            if r.random() < accept(p[x], q[x]):
                text += (x,)
                if bonus and len(text) < 2:
                    text += (bonus(P[text]),)
            else:
                text += (r.choices(range(3), rest(p, q))[0],)
        return text

    def sample(seed, n):
        r = random.Random(seed)
        return [one(r) for _ in range(n)]

    return sample


def test_a_sample_with_far_too_many_paths_is_left_after_few_runs():
    calls = []

    def long(seed, n):
        calls.append(n)
        return np.random.default_rng(seed).choice(3, (n, 20))

    assert _followed(Sampler("long", long), {}) is None
    assert len(calls) < 30


def explained(sample, *, reference=None):
    tested = Sampler("s", sample)
    counts = Counter(drawn(tested, 7, SAMPLES))
    tally = {"samples": SAMPLES, "shown": [[str(text), LAW.get(text, 0.0), count] for text, count in counts.items()]}
    check = "samples_fit_reference" if reference else "samples_fit_law"
    example = Counterexample(("samples",), "then", fault=DIFFERENCE)
    verdict = Verdict("s", check, Status.REFUTED, "", counterexample=example, figures={"tally": tally})
    here = ExplainedSampler(tested, None if reference else LAW, reference and Sampler("plain", reference))
    (result,) = explained_verdicts([verdict], here)
    assert result._replace(counterexample=None) == verdict._replace(counterexample=None)
    return result.counterexample


def greatest(row):
    return max(range(3), key=row.__getitem__)


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        ({"rest": lambda p, q: p}, "a rejected draft is replaced by a draw from p, expected"),
        ({"rest": lambda p, q: [mass + 0.05 for mass in residual(p, q)]}, "norm(max(p - q, 0) + 0.05)"),
        ({"accept": lambda p, q: (p / q) ** 0.5}, "drafts are accepted with probability min(1, (p/q)^0.5)"),
        ({"bonus": greatest}, "the bonus token is the argmax of p"),
    ],
    ids=["residual", "added", "accept", "bonus"],
)
def test_the_fault_in_the_paths_stands_before_the_counts(faulty, said):
    example = explained(sampler(**faulty))
    assert said in example.fault
    assert example.rows[0] == DIFFERENCE
    assert any("drafted" in line for line in example.because)


def test_a_reference_sampler_gives_the_expected_law_by_its_own_paths():
    def plain(seed, n):
        r = random.Random(seed)
        texts = []
        for _ in range(n):
            first = r.choices(range(3), P[()])[0]
            texts.append((first, r.choices(range(3), P[(first,)])[0]))
        return texts

    assert "the bonus token is the argmax of p" in explained(sampler(bonus=greatest), reference=plain).fault


def test_generators_with_one_seed_are_named_and_not_the_rule_that_seems_to_follow():
    def token(generator, row):
        return int(np.searchsorted(np.cumsum(row), generator.random() * sum(row), side="right"))

    def sample(seed, n):
        draft, coin, rest = (np.random.default_rng(seed) for _ in range(3))
        texts = []
        for _ in range(n):
            x = token(draft, Q[()])
            if coin.random() * Q[()][x] >= P[()][x]:
                x = token(rest, residual(P[()], Q[()]))
            texts.append((x, token(draft, P[(x,)])))
        return texts

    assert explained(sample).fault.startswith("random numbers are used twice: the generator is seeded with the same")


def test_a_text_that_continues_after_its_end_is_named_in_both_refutations():
    law = {(2,): 0.25, (0, 0): 0.75}

    def sample(seed, n):
        r = random.Random(seed)
        return [(0, 0) if r.random() < 0.75 else (2, r.choices((0, 1), (1, 3))[0]) for _ in range(n)]

    tested = Sampler("s", sample)
    tally = {"samples": 400, "shown": [["(2,)", 0.25, 0], ["(0, 0)", 0.75, 300]]}
    example = Counterexample(("samples",), DIFFERENCE)
    refuted = Verdict("s", "samples_fit_law", Status.REFUTED, "", counterexample=example, figures={"tally": tally})
    both = [refuted._replace(check="samples_are_supported", figures={}), refuted]
    for verdict in explained_verdicts(both, ExplainedSampler(tested, law)):
        assert verdict.counterexample.fault.startswith("the text continues after its end: 0 follows (2,) (test_paths")
        assert verdict.counterexample.rows == (DIFFERENCE,)


def test_paths_that_do_not_explain_the_counts_are_not_shown():
    def wrong_beside_others(seed, n):
        return sampler(rest=lambda p, q: p if n > 1 else residual(p, q))(seed, n)

    def wrong_otherwise_alone(seed, n):
        return sampler(**({"bonus": greatest} if n == 1 else {"rest": lambda p, q: p}))(seed, n)

    def not_intercepted(seed, n):
        return [(seed % 3, number % 3) for number in range(n)]

    for sample in (wrong_beside_others, wrong_otherwise_alone, not_intercepted):
        assert explained(sample).fault == DIFFERENCE


def test_a_sample_that_opens_a_connection_is_not_followed_and_leaves_nothing_open():
    """Its refutation stands as it is; the sockets of refused connections would warn in a later test."""
    rng = np.random.default_rng(0)
    reached = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def sample(seed, n):
            with socket.create_connection(server.getsockname()):
                reached.append(n)
            return [(int(token),) for token in rng.choice(2, size=n, p=(0.9, 0.1))]

        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            with pytest.raises(SpeculationRefuted, match="samples fit law"):
                check_sampler(sample, law={(0,): 0.5, (1,): 0.5})
            gc.collect()
    assert not [each for each in shown if issubclass(each.category, ResourceWarning)]
    assert 1 not in reached
