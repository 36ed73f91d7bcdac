"""Each row has, as rationals, the joint law of text, accepted drafts and rounds that its program in ``proofs/`` has.

The models are random tables over whole contexts, with zeros, ties and point masses. Both sides are enumerated: the row
by ``program_law``, the program by itself.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache, partial

import pytest

from reference import ALGORITHMS, Task, argmax, as_pmf
from reference.algorithms.cactus import raised
from reference.algorithms.token_cascade import cascade
from reference.drafters.longest_match import longest_match
from reference.pmf import top_tokens
from reference.verifiers.gumbel_coupling import draft_given_target
from reference.verifiers.k_seq import least_rho
from specverify.laws.enumeration import program_law
from test_support.formal import theory_programs as theory
from test_support.formal.theory_programs import Chain, Tree

ROWS = {row.name: row for row in ALGORITHMS}
PROMPT = (0, 1)
TABLES = 12
"""Random pairs of models for each case; some thirty cases make hundreds."""


def random_row(rng, size):
    """Return a pmf of small fractions, often with zeros."""
    weights = [rng.choice((0, 0, 1, 1, 2, 3)) for _ in range(size)]
    weights[rng.randrange(size)] += 1
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def random_models(seed, size):
    """Return p and q: a row of its own for every text that is asked for, the same whenever it is."""

    def model(name):
        return cache(lambda text: random_row(random.Random(f"{seed} {name} {text}"), size))

    p, q = model("p"), model("q")
    return p, (lambda text: p(text) if random.Random(f"{seed} same {text}").random() < 0.1 else q(text))


def row_law(name, p, q, horizon, eos, options):
    """Return rounds -> probability of a row, each round its tokens and how many of them are accepted drafts."""
    task = Task(lambda text: as_pmf(p(text)), lambda text: as_pmf(q(text)), eos=eos, horizon=horizon)
    decoder = ROWS[name].build(task, **options)

    def program(draws):
        state, rounds = decoder.init(PROMPT), []
        while state.remaining:
            state, done = decoder.step(draws, state)
            rounds.append((done.tokens, done.accepted))
        return tuple(rounds)

    found = program_law(program)
    assert not found.missing
    return {rounds: mass for rounds, mass in found.probabilities.items() if mass}


def disagreements(name, options, program, start=None, tables=TABLES):
    """Return the random tables on which a row and its program have different joint laws.

    ``name`` begins with that of the row, ``program(p, q, eos)`` is the round, ``start`` the state that it starts in.
    """
    wrong = []
    for seed in range(tables):
        size, eos = 2 + seed % 2, ((), (1,))[seed % 3 == 2]
        p, q = random_models(f"{name} {seed}", size)
        expected = theory.law(theory.decode(eos, program(p, q, eos), 0, 3, start, PROMPT))
        if row_law(name.split()[0], p, q, 3, eos, options) != expected:
            wrong.append((seed, size, eos))
    return wrong


def drafter(q, gamma, rule=None, bonus=None):
    """Return a chain of gamma drafts from q."""
    return Chain(lambda s, c: gamma, lambda s, c, ds: True, lambda s, c, ds: q(c + ds), rule, bonus)


def verified(p, q, gamma):
    """Return speculative sampling as a chain whose parts another round may use."""
    return drafter(
        q, gamma, lambda s, c, ks, d: theory.speculative_rule(p(c + ks), q(c + ks), d), lambda c: theory.draw(p(c))
    )


def best(model):
    """Return the argmax of each row of a model."""
    return lambda text: argmax(as_pmf(model(text)))


def chain(p, q, gamma, decide, **parts):
    """Return a chain of gamma drafts from q whose rule is ``decide(p, q, d)``."""
    return theory.chain_round(
        Chain(
            **{
                "plan": lambda s, c: gamma,
                "more": lambda s, c, ds: True,
                "q": lambda s, c, ds: q(c + ds),
                "rule": lambda s, c, ks, d: decide(p(c + ks), q(c + ks), d),
                "bonus": lambda c: theory.draw(p(c)),
                **parts,
            }
        )
    )


def stopping(q, threshold):
    return theory.until_stop(lambda s, c, ds: q(c + ds), lambda s, pmf, token: pmf[token] < threshold)


def dropping(p, q, threshold):
    def rule(s, c, ks, d):
        pmf = q(c + ks)
        return theory.drop_rule(lambda x: pmf[x] >= threshold, p(c + ks), pmf, d)

    return chain(p, q, 2, None, rule=rule, more=stopping(q, threshold))


def judged(p, q, correct):
    def rule(s, c, ks, d):
        last = (c + ks)[-1]
        return theory.judge_rule(lambda x: (last, x) in correct, p(c + ks), q(c + ks), d)

    return chain(p, q, 2, None, rule=rule)


def block(p, q):
    return theory.block_round(drafter(q, 2), lambda c, ds: theory.block_coins(p, q, c, Fraction(1), (), ds))


def hierarchical(p, q):
    one = (Fraction(1), Fraction(1))
    return theory.block_round(drafter(q, 2), lambda c, ds: theory.hierarchical_coins(p, q, c, one, (), ds))


def drafted_path(draft, ks, z):
    return theory.ret(draft[: len(ks) + 1] == (*ks, z))


def own_draws(p, drafts):
    return theory.own_draws_round(p, drafts, lambda draft, c, ks, z: drafted_path(draft, ks, z))


def sampled_drafts(q, gamma):
    draft = Chain(None, lambda s, c, ds: True, lambda s, c, ds: q(c + ds), None, None)
    return lambda n, c: theory.propose(draft, min(gamma, n - 1), None, c, ())


def greedy(p):
    return lambda text: tuple(Fraction(x == best(p)(text)) for x in range(len(p(text))))


def without_replacement(q, earlier):
    kept = [Fraction(0) if x in earlier else mass for x, mass in enumerate(q)]
    return None if not sum(kept) else tuple(mass / sum(kept) for mass in kept) if earlier else q


def regular(q):
    """Siblings without replacement; a plan is the number of children of each level."""
    return Tree(
        lambda plan, c, earlier: without_replacement(q(c), earlier) if plan and len(earlier) < plan[0] else None,
        lambda plan, c, earlier, d: plan[1:],
        width=2,
    )


def most_likely(q):
    """The most probable tokens as point masses."""

    def sibling(plan, c, earlier):
        ranked = top_tokens(as_pmf(q(c)), len(earlier) + 1)
        if not plan or len(earlier) >= plan[0] or len(ranked) <= len(earlier):
            return None
        return tuple(Fraction(x == ranked[-1]) for x in range(len(q(c))))

    return Tree(sibling, lambda plan, c, earlier, d: plan[1:], width=2)


def independent(q):
    """Independent siblings: with replacement, so that nodes may be equal and are merged."""
    return Tree(
        lambda plan, c, earlier: q(c) if plan and len(earlier) < plan[0] else None,
        lambda plan, c, earlier, d: plan[1:],
        width=2,
    )


def sequences(q, count):
    """K sequences of one drafter: the root has K children, every other node has one."""
    return Tree(
        lambda plan, c, earlier: q(c) if len(earlier) < plan else None, lambda plan, c, earlier, d: 1, width=count
    )


def k_seq(p, q):
    choose_rho = lambda r, u, count: Fraction(least_rho(as_pmf(r), as_pmf(u), count, 8))  # noqa: E731
    return theory.tree_round(p, sequences(q, 2), theory.k_seq(choose_rho), 2, 2)


def triforce(p, q):
    partial_model = lambda c: p(c[min(1, len(c) - 1) :])  # noqa: E731 - the target without the first token
    inner = chain(partial_model, q, 1, theory.speculative_rule)
    outer = Chain(
        lambda s, c: 2,
        None,
        None,
        lambda s, c, ks, d: theory.speculative_rule(p(c + ks), partial_model(c + ks), d),
        lambda c: theory.draw(p(c)),
    )
    return theory.cascade_round(outer, inner, None, slack=1)


def token_cascade(p, q):
    task = Task(lambda text: as_pmf(p(text)), lambda text: as_pmf(q(text)))
    pi = cascade(task, Fraction(1, 2))
    mixed = lambda text: tuple(Fraction(mass) for mass in pi(text).tolist())  # noqa: E731
    for text in ((0, 1), (0, 1, 1)):
        good = [2 * mass >= max(p(text)) for mass in p(text)]
        assert mixed(text) == theory.keep_tokens(good.__getitem__, p(text), q(text))
    return chain(mixed, q, 2, theory.speculative_rule)


def cactus(p, q):
    def rule(target, draft, d):
        h = lambda d: tuple(raised(as_pmf(target), d, Fraction(1, 10)).tolist())  # noqa: E731
        return theory.raised_rule(h, draft, d)

    return chain(p, q, 2, rule)


def shared_noise(p, q):
    """Gumbel coupling: the draft is drawn given the target's draw, and the round goes on while they agree."""

    def candidate(draft, c, ks, z):
        if len(ks) >= 2:
            return theory.ret(False)
        d = draft_given_target(as_pmf(p(c + ks)), as_pmf(q(c + ks)), z)
        return theory.bind(theory.draw(d.tolist()), lambda d: theory.ret(d == z))

    return theory.own_draws_round(p, lambda n, c: theory.ret(None), candidate)


def egag(p, q):
    """Gamma from the drafter's first pmf; the value is the one that the row plans."""
    task = Task(lambda text: as_pmf(p(text)), lambda text: as_pmf(q(text)))
    rule = ROWS["egag"].parts(task, gamma_min=0, gamma_max=2, beta=0.5).length
    return chain(
        p,
        q,
        None,
        theory.speculative_rule,
        plan=lambda s, c: rule.plan(s, c).gamma,
        next=lambda s, c, ds, result: rule.plan(s, c).state,
    )


def dynamic_k(p, q):
    """Gamma from the accepted share of the last round."""
    task = Task(lambda text: as_pmf(p(text)), lambda text: as_pmf(q(text)))
    rule = ROWS["dynamic-k"].parts(task, start=1, minimum=0, maximum=2).length
    return chain(
        p,
        q,
        None,
        theory.speculative_rule,
        plan=lambda s, c: rule.init if s is None else s,
        next=lambda s, c, ds, result: rule.update(rule.init if s is None else s, len(ds), result[2]),
    )


REWARDED = ((1, 0), (0, 1), (1, 1))
CORRECT = ((0, 1), (1, 1), (1, 0))
PROGRAMS = {
    "autoregressive": ({}, lambda p, q: own_draws(p, lambda n, c: theory.ret(()))),
    "speculative-sampling": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.speculative_rule)),
    "edge-cloud-sparse-q": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.speculative_rule)),
    "edge-cloud-two-phase": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.speculative_rule)),
    "confidence-stopping": (
        {"threshold": Fraction(1, 3), "gamma": 2},
        lambda p, q: chain(p, q, 2, theory.speculative_rule, more=stopping(q, Fraction(1, 3))),
    ),
    "egag": ({"gamma_min": 0, "gamma_max": 2, "beta": 0.5}, egag),
    "dynamic-k": ({"start": 1, "minimum": 0, "maximum": 2}, dynamic_k),
    "confidence-dropping": (
        {"threshold": Fraction(1, 3), "gamma": 2},
        lambda p, q: dropping(p, q, Fraction(1, 3)),
    ),
    "block-verification": ({"gamma": 2}, block),
    "hierarchical": ({"gamma": 2}, hierarchical),
    "sample-and-match": ({"gamma": 2}, lambda p, q: own_draws(p, sampled_drafts(q, 2))),
    "token-timing": ({"gamma": 2}, lambda p, q: own_draws(p, sampled_drafts(q, 2))),
    "edge-cloud-match": (
        {"gamma": 2},
        lambda p, q: chain(p, q, 2, lambda target, draft, d: theory.match_rule(target, d)),
    ),
    "greedy-speculation": ({"gamma": 2}, lambda p, q: own_draws(greedy(p), sampled_drafts(q, 2))),
    "edge-cloud-greedy": ({"gamma": 2}, lambda p, q: own_draws(greedy(p), sampled_drafts(q, 2))),
    "sam-decoding": (
        {"least": 1, "predict": 3},
        lambda p, q: own_draws(p, lambda n, c: theory.ret(longest_match(c, 1, 3)[: n - 1])),
    ),
    "gumbel-coupling": ({"gamma": 2}, shared_noise),
    "candidate-set": (
        {"branching": (2, 1)},
        lambda p, q: theory.tree_round(p, most_likely(q), theory.look_up, (2, 1), 2),
    ),
    "rsd": ({"branching": (2, 1)}, lambda p, q: theory.tree_round(p, regular(q), theory.try_in_turn, (2, 1), 2)),
    "k-seq": ({"sequences": 2, "depth": 2, "bits": 8}, k_seq),
    "traversal-verification": (
        {"branching": (2, 1), "replacement": False},
        lambda p, q: theory.traversal_round(p, regular(q), (2, 1), 2),
    ),
    "triforce": ({"gamma": 2, "inner": 1, "forget": 1}, triforce),
    "token-cascade": ({"alpha": Fraction(1, 2), "gamma": 2}, token_cascade),
    "resample-from-target": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.resample_rule)),
    "edge-cloud-shortcut": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.resample_rule)),
    "lenience": (
        {"lenience": Fraction(1, 2), "gamma": 2},
        lambda p, q: chain(p, q, 2, partial(theory.lenient_rule, Fraction(1, 2))),
    ),
    "accept-if-likelier": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.likelier_rule)),
    "edge-cloud-guide-code": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.likelier_rule)),
    "clamped-scalar-residual": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.scalar_rule)),
    "edge-cloud-scalar-q": ({"gamma": 2}, lambda p, q: chain(p, q, 2, theory.scalar_rule)),
    "judge-decoding": ({"correct": CORRECT, "gamma": 2}, lambda p, q: judged(p, q, CORRECT)),
    "cactus": ({"delta": Fraction(1, 10), "gamma": 2}, cactus),
    "reward-guided": (
        {"rewarded": REWARDED},
        lambda p, q: theory.reward_round(p, q, lambda c, d: (c[-1], d) in REWARDED),
    ),
}
"""Row -> its options, and the round of its program."""


@pytest.mark.thorough(keep=12)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_row_has_the_joint_law_of_its_program(name):
    options, program = PROGRAMS[name]
    assert disagreements(name, options, lambda p, q, eos: program(p, q)) == []


@pytest.mark.parametrize("select", [theory.look_up, theory.try_in_turn])
def test_a_tree_with_equal_nodes_is_lossless(select):
    for seed in range(TABLES):
        p, q = random_models(f"merged {seed}", 2)
        rounds = theory.tree_round(p, independent(q), select, (2, 1), 2)
        texts = theory.bind(
            theory.decode((), rounds, 0, 3, None, PROMPT),
            lambda rounds: theory.ret(tuple(token for block, _ in rounds for token in block)),
        )
        alone = theory.decode((), own_draws(p, lambda n, c: theory.ret(())), 0, 3, None, PROMPT)
        target = theory.bind(alone, lambda rounds: theory.ret(tuple(block[0] for block, _ in rounds)))
        assert theory.law(texts) == theory.law(target)


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ("speculative-sampling", theory.resample_rule),
        ("resample-from-target", theory.speculative_rule),
        ("lenience", theory.speculative_rule),
        ("clamped-scalar-residual", theory.resample_rule),
    ],
)
def test_another_program_is_told_apart(row, wrong):
    options, _ = PROGRAMS[row]
    differ = 0
    for seed in range(TABLES):
        p, q = random_models(f"{row} {seed}", 3)
        expected = theory.law(theory.decode((), chain(p, q, 2, wrong), 0, 3, None, PROMPT))
        differ += row_law(row, p, q, 3, (), options) != expected
    assert differ > TABLES // 2
