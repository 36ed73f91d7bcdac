"""Laws of long texts by merged rounds and fingerprints: exact where they are small, linear where they are long."""

from __future__ import annotations

import operator
from fractions import Fraction
from functools import partial
from itertools import product

import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.enumeration import decoder_law
from specverify.laws.long_texts import (
    Hidden,
    NotRational,
    ReadsWholeText,
    TooManyRounds,
    difference,
    expectation,
    rounds_of,
)
from specverify.laws.scenarios import Scenario, handed_task
from specverify.mutants import mutants
from specverify.mutants.mutant import correct
from specverify.reference import Decoder, Round
from specverify.reference.algorithms import autoregressive
from specverify.run.verify import Checklist, run_check
from specverify.subjects.algorithm import algorithm_subject

PROMPT = (0, 1)
LOSSLESS = {
    "speculative-sampling": {"gamma": 2},
    "egag": {"gamma_min": 1, "gamma_max": 3},
    "block-verification": {"gamma": 2},
}
LOSSY = {"lenience": {"lenience": Fraction(4, 5), "gamma": 1}, "hierarchical-released": {"gamma": 2}}


def task_of(horizon, vocabulary=2, eos=()):
    return handed_task(Scenario("generic", vocabulary, PROMPT, horizon, eos, seed=9, order=2))


def decoder_of(name, task, **options):
    return correct(name).build(task, **options)


def rounds(name, options, task):
    return rounds_of(decoder_of(name, task, **options), PROMPT, 2, 20_000)


def only(text, vocabulary):
    return [[int(token == other) for other in range(vocabulary)] for token in text]


@pytest.mark.parametrize("name", [*LOSSLESS, *LOSSY])
def test_the_graph_has_the_law_that_whole_states_have(name):
    task = task_of(4)
    options = {**LOSSLESS, **LOSSY}[name]
    law = decoder_law(decoder_of(name, task, **options), PROMPT)
    graph = rounds(name, options, task)
    for text in product(range(2), repeat=4):
        assert expectation(graph, only(text, 2)) == law.probabilities.get(text, 0)


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("eos", [(), (1,)])
def test_a_lossless_row_has_the_fingerprint_of_the_target(name, eos):
    task = task_of(48, eos=eos)
    assert difference(rounds(name, LOSSLESS[name], task), rounds("autoregressive", {}, task), 2, seed=0) is None


@pytest.mark.parametrize("name", LOSSY)
def test_a_difference_is_a_pattern_with_its_probabilities(name):
    task = task_of(5)
    pattern = difference(rounds(name, LOSSY[name], task), rounds("autoregressive", {}, task), 2, seed=0)
    first, behind = pattern.place, pattern.place + len(pattern.tokens)
    laws = [
        decoder_law(decoder_of(which, task, **options), PROMPT).probabilities
        for which, options in ((name, LOSSY[name]), ("autoregressive", {}))
    ]
    chances = [sum(mass for text, mass in law.items() if text[first:behind] == pattern.tokens) for law in laws]
    assert chances == [pattern.one, pattern.other]
    assert pattern.one != pattern.other


def test_the_cost_is_linear_in_the_horizon():
    costs = [rounds("speculative-sampling", {"gamma": 2}, task_of(horizon)).runs for horizon in (24, 48, 96)]
    assert costs[2] - costs[1] == 2 * (costs[1] - costs[0])


def test_a_bug_at_a_late_place_is_found_there_and_nowhere_before():
    planted = next(mutant for mutant in mutants() if mutant.name == "page-of-sixteen-begins-late")
    checked = partial(run_check, planted.open())
    assert checked(check_named("law_is_target"), Checklist(())).status is Status.HOLDS
    verdict = checked(check_named("long_law_is_target"), Checklist(()))
    assert verdict.status is Status.REFUTED
    assert verdict.statement.startswith("new token 15 is ")
    assert run_check(planted.control(), check_named("long_law_is_target"), Checklist(())).status is Status.HOLDS


# What is not merged


USES = {
    "compared with another": lambda token: token == 0,
    "ordered": lambda token: token < 1,
    "hashed": lambda token: {token: 1},
    "an index": lambda token: [0, 1][token],
    "a truth value": bool,
    "an integer": int,
    "a sum": lambda token: token + 1,
    "a sum from the right": lambda token: 1 + token,
    "written down": str,
    "formatted": lambda token: f"{token}",
    "looked for": (0, 1).index,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_hidden_token_is_of_no_use(use):
    uses = []
    with pytest.raises(ReadsWholeText):
        use(Hidden(3, uses))
    assert uses == [3]


def test_a_hidden_token_equals_itself_where_texts_are_compared():
    one, other = Hidden(0, []), Hidden(1, [])
    assert (one, other, 5) == (one, other, 5)
    with pytest.raises(ReadsWholeText):
        operator.eq((one, 5), (other, 5))


def reading(read):
    """Return the decoder that draws from the target, and ``read``s the whole text in every round."""
    plain = autoregressive.build(task_of(6))

    def step(draws, state):
        read(state.tokens)
        return plain.step(draws, state)

    return Decoder(plain.init, step)


def test_a_decoder_that_reads_the_whole_text_is_not_merged():
    with pytest.raises(ReadsWholeText):
        rounds_of(reading(sum), PROMPT, 2, 1000)


def test_an_exception_that_is_swallowed_is_a_use_all_the_same():
    def read(tokens):
        try:
            return tokens[0] == 1
        except ReadsWholeText:
            return False

    with pytest.raises(ReadsWholeText):
        rounds_of(reading(read), PROMPT, 2, 1000)


def test_the_length_of_a_text_may_be_read():
    assert rounds_of(reading(len), PROMPT, 2, 1000).horizon == 6


def test_a_round_without_a_token_is_an_error():
    stuck = autoregressive.build(task_of(6))._replace(step=lambda draws, state: (state, Round((), (), 0, 0)))
    with pytest.raises(ValueError, match="committed no token"):
        rounds_of(stuck, PROMPT, 2, 1000)


def test_floats_and_states_without_end_are_refused():
    floats = handed_task(Scenario("generic", 2, PROMPT, 6, seed=9, order=2), rational=False)
    with pytest.raises(NotRational):
        rounds_of(autoregressive.build(floats), PROMPT, 2, 1000)
    with pytest.raises(TooManyRounds, match="new token"):
        rounds("nasd", {"order": 2, "gamma": 1}, task_of(48))
    with pytest.raises(TooManyRounds, match="more than 3 runs"):
        rounds_of(autoregressive.build(task_of(4)), PROMPT, 2, 3)


# The check


def checked(name):
    row = correct(name)
    subject = algorithm_subject(row)
    check = check_named("long_law_is_target")
    return check.obstacle(subject), lambda: run_check(subject, check, Checklist(()))


def test_a_row_that_merges_is_examined_over_forty_eight_tokens():
    obstacle, run = checked("egag")
    assert obstacle is None
    verdict = run()
    assert verdict.status is Status.HOLDS
    assert verdict.figures["new_tokens"] == 48
    assert verdict.figures["miss"] < 1e-16


@pytest.mark.parametrize("name", ["prompt-lookup", "sam-decoding"])
def test_a_row_that_does_not_says_why(name):
    verdict = checked(name)[1]()
    assert verdict.status is Status.NOT_APPLICABLE
    assert "uses tokens before the last ones" in verdict.statement
