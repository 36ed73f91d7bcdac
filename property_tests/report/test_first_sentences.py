"""The first line of a refutation names the fault in the words of decoding: wrong programs, each with its sentence."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.checks._engine_stories import draws_of, with_pmfs
from specverify.checks._first_difference import first_difference, text_fault
from specverify.checks._round_faults import fault_of_rounds
from specverify.checks._round_stories import rounds_of_path
from specverify.checks._token_names import name_of_token
from specverify.checks._traces import round_around
from specverify.laws.enumeration import whole_run
from specverify.laws.paths import paths
from specverify.laws.scenarios import Scenario
from specverify.report.prose import also_refuted, by_cause, failure
from specverify.subjects.engine import engine_subject
from specverify.subjects.subject import InScenario, Trace
from specverify.subjects.verifier import verifier_subject
from specverify.testing import SpeculationRefuted, check_engine

RNG = np.random.default_rng()
SMALL = Scenario("generic", 2, (0,), 2, seed=0)
TARGET = ((0.2, 0.3, 0.5), (0.5, 0.25, 0.25), (0.1, 0.8, 0.1))
DRAFT = ((0.6, 0.3, 0.1), (0.2, 0.4, 0.4), (0.3, 0.4, 0.3))


def drawn(row):
    row = np.maximum(row, 0)
    return int(RNG.choice(len(row), p=row / row.sum()))


def verifier(accept=lambda p, q: p / q, replace=lambda p, q: p - q, bonus=lambda p: p[-1]):
    def verify(p, q, draft_tokens):
        tokens = []
        for i, token in enumerate(draft_tokens.tolist()):
            if RNG.random() < accept(p[i, token], q[i, token]):
                tokens.append(token)
                continue
            row = replace(p[i], q[i])
            return [*tokens, drawn(row if (row > 0).any() else p[i])]
        return [*tokens, drawn(bonus(p))]

    return verify


def in_scenario(verify, gamma=1, scenario=SMALL):
    return InScenario(verifier_subject(verify, "it", (gamma,)).variants[0], scenario, rational=False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"replace": lambda p, q: p},
            "a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0)): in place of",
        ),
        ({"replace": lambda p, q: q - p}, "a rejected draft is replaced by a draw from norm(max(q - p, 0)), expected"),
        ({"replace": lambda p, q: abs(p - q)}, "a rejected draft is replaced by a draw from norm(|p - q|), expected"),
        (
            {"accept": lambda p, q: q / p},
            "drafts are accepted with probability min(1, q/p), expected min(1, p/q): draft 1",
        ),
        (
            {"accept": lambda p, q: 1.25 * p / q},
            "drafts are accepted with probability min(1, 1.25 p/q), expected min(1,",
        ),
        (
            {"accept": lambda p, q: 1.0},
            "drafts are accepted always, expected min(1, p/q): draft 1, token 1 (p = 0.429, q",
        ),
        (
            {"bonus": lambda p: p[-2]},
            "the bonus token is drawn from the row of p before the last draft, expected p after",
        ),
    ],
)
def test_a_wrong_part_of_a_round_is_named(wrong, said):
    assert fault_of_rounds(in_scenario(verifier(**wrong))).sentence.startswith(said)


def test_a_right_round_has_no_fault():
    assert fault_of_rounds(in_scenario(verifier())) is None


def test_what_no_formula_fits_is_told_in_numbers_alone():
    sentence = fault_of_rounds(in_scenario(verifier(accept=lambda p, q: (p / q) ** 3))).sentence
    assert sentence.startswith(
        "draft 1, token 1 (p = 0.429, q = 0.667) is accepted with probability 0.266 (test_first_"
    )
    assert sentence.endswith("expected 0.643 = min(1, p/q)")


def test_drafts_that_count_behind_a_rejection_are_told():
    def verify(p, q, draft_tokens):
        kept = sum(RNG.random() * q[i, x] < p[i, x] for i, x in enumerate(draft_tokens.tolist()))
        row = p[kept] if kept == len(draft_tokens) else np.maximum(p[kept] - q[kept], 0)
        return [*draft_tokens[:kept].tolist(), drawn(row if row.any() else p[kept])]

    here = in_scenario(verify, 2, SMALL._replace(horizon=3))
    assert "whether draft 1 is accepted depends on draft 2" in fault_of_rounds(here).sentence


def test_a_path_is_told_round_by_round_with_the_right_value_beside_the_wrong_step():
    here = in_scenario(verifier(replace=lambda p, q: p))
    rejected = next(path for path in paths(whole_run(here.decoder, here.prompt)) if path.choices[:2] == (1, 1))
    told = rounds_of_path(here, rejected.choices)
    assert told.startswith("drafted 1 (q = 0.667), rejected (u >= 0.643, test_first_sentences.py:")
    assert "; expected " in told


LAW = {(0, 1): Fraction(1, 2), (1, 0): Fraction(1, 2)}


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ({(0, 1): Fraction(3, 4), (1, 0): Fraction(1, 4)}, "new token 1 is 0 with probability 3/4, expected 1/2"),
        ({(0, 0): Fraction(1, 2), (1, 0): Fraction(1, 2)}, "new token 2 is 0 instead of 1 after new token 0"),
        ({(0, 1): Fraction(1, 2), (1,): Fraction(1, 2)}, "the text ends after 1 of 2 new tokens"),
        (
            {(0, 1, 1): Fraction(1, 2), (1, 0): Fraction(1, 2)},
            "the text goes on with token 1 after its end after new tokens",
        ),
    ],
)
def test_the_first_token_that_differs_is_named(law, said):
    assert first_difference(law, LAW).fault.startswith(said)


def test_rows_that_are_right_alone_are_told_to_depend_on_each_other():
    expected = {((a,), (b,)): Fraction(1, 4) for a in range(2) for b in range(2)}
    law = {((0,), (0,)): Fraction(1, 2), ((1,), (1,)): Fraction(1, 2)}
    found = first_difference(law, expected, each="row").fault
    assert found.startswith("the rows are not independent: each alone is right, but 1 and 1 come together with probab")
    wrong = {((0,), (0,)): Fraction(1, 2), ((0,), (1,)): Fraction(1, 2)}
    assert first_difference(wrong, expected, each="row").fault.startswith("row 1, new token 1 is 0 with probability 1,")


@pytest.mark.parametrize(
    ("got", "said"),
    [
        ((1, 2, 0, 0, 1), "new token 3 is 0 instead of 3"),
        ((1, 2, 3), "the text ends after 3 of 5 new tokens"),
        ((1, 2, 3, 0, 1, 2), "1 token too many: the text should end after new token 5"),
        ((1, 3, 0, 1), "new token 2 (2) is missing"),
        ((1, 1, 2, 3, 0), "new token 1 (1) comes twice"),
    ],
)
def test_a_certain_text_that_differs_is_named(got, said):
    assert text_fault((1, 2, 3, 0, 1), got) == said


def test_the_round_of_a_wrong_token_is_read_off_the_questions_to_the_models():
    queries = (("draft", (0,)), ("draft", (0, 1)), ("target", (0,)), ("target", (0, 1)), ("draft", (0, 1, 3)))
    trace = Trace((((0,), (1, 3, 2)),), queries, lambda tokens: np.eye(4)[(len(tokens) + 1) % 4])
    assert round_around(trace, 0, (1, 2, 2)) == (
        "round from new token 1: drafted 1 3, accepted 2 (inferred from the tokens)"
    )


def test_a_wrong_rule_of_an_engine_is_named_only_where_one_law_fits():
    p, q = TARGET[0], DRAFT[0]
    kept = [min(a, b) for a, b in zip(p, q, strict=True)]
    from_p = [low + (1 - sum(kept)) * mass for low, mass in zip(kept, p, strict=True)]
    assert name_of_token(from_p, p, q).startswith("a rejected draft is replaced by a draw from p, expected")
    assert name_of_token(q, p, q).startswith("every draft is kept, as q has it")
    assert name_of_token(p, p, q) == ""
    assert name_of_token((0.3, 0.3, 0.4), p, q) == ""


def choose(pmf):
    return random.choices(range(3), pmf)[0]


def plain(last=0, length=2):
    new = [last]
    for _ in range(length):
        new.append(choose(TARGET[new[-1]]))
    return new[1:]


def resamples_from_p(last=0, length=2):
    new = [last]
    while len(new) <= length:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft = choose(q)
        new.append(draft if random.random() < p[draft] / q[draft] else choose(p))
    return new[1:]


def test_an_engine_is_refuted_with_the_fault_in_the_first_line():
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(resamples_from_p, plain, checks=["law_is_target"])
    first, *others = str(raised.value).splitlines()
    assert ": a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0)): new token 1 is" in first
    assert any("drew 1 from (0.6, 0.3, 0.1) (test_first_sentences.py:" in line for line in others)
    assert not any("replay" in line or "draws below" in line for line in others)


def test_the_comparisons_of_a_lookup_tell_the_pmf_that_it_looked_in():
    with engine_subject(resamples_from_p, plain, "it").programs[0].open() as run:
        path = next(iter(paths(run)))
        first = with_pmfs(run, draws_of(path.decisions), 3, {})[0]
    assert (first.outcome, first.pmf) == (0, pytest.approx(DRAFT[0]))


def refuted(check, fault=""):
    example = Counterexample(("here",), "then", fault=fault)
    return Verdict("it", check, Status.REFUTED, "no", None, Evidence.EXACT, example)


def test_verdicts_of_one_wrong_law_are_told_once():
    verdicts = [refuted("tokens_are_supported"), refuted("law_is_target", "the fault"), refuted("inputs_unchanged")]
    first, second = by_cause(verdicts)
    assert [verdict.check for verdict in first] == ["law_is_target", "tokens_are_supported"]
    assert [verdict.check for verdict in second] == ["inputs_unchanged"]
    assert failure(first[0], verdicts).splitlines()[0] == "the fault"
    assert also_refuted(first[1:]) == "  Refuted with it: tokens are supported"
    assert [len(group) for group in by_cause([refuted("tokens_are_supported"), refuted("eos_is_final")])] == [1, 1]
