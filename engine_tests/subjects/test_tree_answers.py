"""What a verifier of trees is asked beside its law: ends of random numbers, arrays, answers, and what it is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reference.tree_layouts import conditional_pmfs
from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.forms import Form
from specverify.subjects.subject import UnusableSubject
from specverify.subjects.tree_answers import TreeAnswer, read_answer, read_answers
from specverify.subjects.tree_call import TreeRows, certain_tree, neighbours
from specverify.subjects.tree_verifier import tree_subject
from test_support.trees import tree_rules as rules
from test_support.verifiers.examined import verdict_of

TREE = (-1, -1, 0)
TOP_K = "top_k"


def checked(verify, check, drafts=TOP_K, trees=(TREE,), keep=lambda scenario: scenario.vocabulary < 4):
    subject = tree_subject(verify, "subject", Form(drafts=drafts), trees)
    few = subject._replace(scenarios=tuple(filter(keep, subject.scenarios)))
    return run_check(few, check_named(check), Checklist((), Conditions(edge=0.0)))


# Ends of random numbers


def coin(keeps):
    """Point masses tried in turn, as EAGLE does, in NumPy."""

    def verify(p, q, parents, tokens):
        rng, node, kept = np.random.default_rng(), -1, []
        while True:
            law, found = p[1 + node].copy(), None
            for child in np.flatnonzero(parents == node):
                if keeps(rng.random(), law[tokens[child]]):
                    found = child
                    break
                law[tokens[child]] = 0
                law = law / law.sum() if law.any() else p[1 + node]
            if found is None:
                return [*kept, int(rng.choice(len(law), p=law))]
            kept.append(int(tokens[found]))
            node = found

    return verify


def test_a_coin_of_exactly_0_may_not_keep_a_forbidden_candidate():
    assert checked(coin(lambda u, mass: u < mass), "support_at_boundary_draws").status is Status.HOLDS
    found = checked(coin(lambda u, mass: u <= mass), "support_at_boundary_draws")
    assert found.status is Status.REFUTED
    *_, root, first, second, third, drafted, number = found.counterexample.let
    assert root.startswith("root, after (0, 1, 0")
    assert first.startswith("#0 (token ")
    assert "below the root), after" in first
    assert "below the root), after" in second
    assert "below #0), after" in third
    assert drafted.startswith("drafted tree #0=")
    assert "gives 0.0" in number


@pytest.mark.thorough
def test_an_empty_residual_of_a_tree_is_refuted():
    def divided(p, q):
        left = torch.clamp(p - q, min=0)
        return left / left.sum()

    right, wrong = (rules.by_parents(owed, conditional_pmfs) for owed in (rules.residual, divided))
    assert checked(right, "support_at_boundary_draws", "without_replacement", ((-1, -1),)).status is Status.HOLDS
    found = checked(wrong, "support_at_boundary_draws", "without_replacement", ((-1, -1),))
    assert found.status is Status.REFUTED
    assert "it raises RuntimeError" in found.statement


def test_weights_that_are_nan_at_an_end_are_refuted():
    """The row of the next token is left to the caller, so nothing is raised where it is made."""

    def divided(p, q):
        left = torch.clamp(p - q, min=0)
        return left / left.sum()

    def verify(p, q, parents, tokens):
        own = conditional_pmfs(q, parents, tokens)
        if torch.rand(()) * own[0, tokens[0]] < p[0, tokens[0]]:
            return tokens[:1], p[1]
        return tokens[:0], divided(p[0], own[0])

    found = checked(verify, "support_at_boundary_draws", "without_replacement", ((-1,),))
    assert found.status is Status.REFUTED
    assert "it returned the weights (nan, nan" in found.statement


# Arrays and answers


def written_to(p, q, parents, tokens):
    """Wrong: what a candidate loses is taken from the caller's rows."""
    answer = rules.in_numpy(p, q, parents, tokens)
    p[0, tokens[0]] = 0
    return answer


BUFFER = np.full(8, -1)


def one_buffer(p, q, parents, tokens):
    """Wrong: every answer is a view of one buffer."""
    answer = rules.in_numpy(p, q, parents, tokens)
    BUFFER[: len(answer)], BUFFER[len(answer) :] = answer, -1
    return BUFFER


def weights_are_a_view(p, q, parents, tokens):
    """The caller draws from the row at once, so it may be one of p."""
    return tokens[:0].copy(), p[0]


def tokens_are_a_view(p, q, parents, tokens):
    """The accepted tokens are the caller's own, which is said."""
    return tokens[:1], p[1]


def test_what_the_caller_passed_in_and_was_answered_is_left_alone():
    assert checked(rules.in_numpy, "inputs_unchanged").status is Status.HOLDS
    found = checked(written_to, "inputs_unchanged")
    assert found.status is Status.REFUTED
    assert found.statement.startswith("p[0, ")
    for verify in (rules.in_numpy, weights_are_a_view):
        assert checked(verify, "outputs_are_fresh").status is Status.HOLDS
    found = checked(tokens_are_a_view, "outputs_are_fresh")
    assert found.status is Status.HOLDS
    assert "until its caller's arrays are overwritten" in found.statement
    assert checked(one_buffer, "outputs_are_fresh").status is Status.REFUTED


def seeded(p, q, parents, tokens):
    """Wrong: the generator begins again in every call."""
    torch.manual_seed(3)
    return rules.by_parents()(p, q, parents, tokens)


@pytest.mark.thorough
@pytest.mark.parametrize(("verify", "status"), [(rules.by_parents(), Status.HOLDS), (seeded, Status.REFUTED)])
def test_no_stream_of_randomness_begins_again(verify, status):
    subject = tree_subject(verify, "subject", Form(drafts="with_replacement"), ((-1, -1),))
    few = tuple(item for item in subject.scenarios if (item.vocabulary, item.horizon) == (3, 5))
    found = run_check(subject._replace(scenarios=few), check_named("draws_are_independent"), Checklist(()))
    assert found.status is status, found.statement


@pytest.mark.thorough
def test_one_coin_a_level_against_sums_is_one_draw():
    found = verdict_of(
        tree_subject(rules.by_links(), "links", Form(drafts=TOP_K, batched=True), (TREE,)), "law_is_target"
    )
    assert found.status is Status.HOLDS
    subject = tree_subject(rules.by_links(), "links", Form(drafts=TOP_K, batched=True), (TREE,))
    few = tuple(item for item in subject.scenarios if (item.vocabulary, item.horizon) == (3, 5))
    audit = run_check(subject._replace(scenarios=few), check_named("draws_are_independent"), Checklist(()))
    assert audit.status is Status.HOLDS, audit.statement


def halves(p, q, parents, tokens):
    """Wrong: the last token is no whole number."""
    *kept, last = rules.in_numpy(p, q, parents, tokens)
    return [*kept, last + 0.5]


def test_a_token_is_a_whole_number():
    assert checked(halves, "tokens_are_supported").status is Status.REFUTED


# Reading answers

ROWS = [0.25, 0.75]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ([1, 0, -1], TreeAnswer((1, 0))),
        (torch.tensor([1, 0, -1]), TreeAnswer((1, 0))),
        ((1, 0), TreeAnswer((1, 0))),
        (([], ROWS), TreeAnswer((), (0.25, 0.75), "float64")),
        ((np.array([1, -1]), np.array(ROWS, dtype=np.float32)), TreeAnswer((1,), (0.25, 0.75), "float32")),
        ((torch.tensor([1]), torch.tensor(ROWS)), TreeAnswer((1,), (0.25, 0.75), "float32")),
        ((torch.tensor([1]), torch.tensor([2.0, 0.0])), TreeAnswer((1,), (2.0, 0.0), "float32")),
    ],
)
def test_tokens_or_accepted_tokens_and_weights_are_read(answer, found):
    assert read_answer(answer, TREE, 2) == found


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([], "it emitted 0 tokens, expected 1 to 4: accepted drafts and one more"),
        (([0, 0, 0, 0], ROWS), "it emitted 4 tokens, expected 0 to 3: accepted drafts"),
        (([], [1.0]), r"weights of the next token as list, expected \[vocabulary\]"),
        (([], torch.tensor([ROWS])), r"weights of the next token as Tensor of shape \[1, 2\], expected \[vocabulary\]"),
        (([], torch.tensor(ROWS).half()), "weights of the next token in float16, expected float32 or float64"),
        (([], [float("nan"), 1.0]), r"the weights \(nan, 1.0\) of the next token, expected a positive sum"),
        (([], [0.0, 0.0]), r"the weights \(0.0, 0.0\) of the next token, expected a positive sum"),
        (([], [2.0, -1.0]), r"the weights \(2.0, -1.0\) of the next token, expected a positive sum"),
        (([], ["a", "b"]), "it returned list, expected weights of the next token"),
        (None, "it returned NoneType, expected a row of integer tokens"),
    ],
)
def test_what_is_no_answer_is_named_in_a_sentence(answer, sentence):
    with pytest.raises(UnusableSubject, match=sentence):
        read_answer(answer, TREE, 2)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([[0]], "it returned 1 answers for a batch of 2 trees, expected as many"),
        (np.zeros(2), r"it returned ndarray of shape \[2\], expected an answer for each of 2 trees"),
        ([[0], ([0, 0, 0, 0], ROWS)], "tree 2 of 2 emitted 4 tokens, expected 0 to 3"),
    ],
)
def test_what_is_no_answer_of_a_batch_is_named_in_a_sentence(answer, sentence):
    with pytest.raises(UnusableSubject, match=sentence):
        read_answers(answer, [TREE, TREE], 2)


# Neighbours


@pytest.mark.parametrize("vocabulary", [2, 3, 4])
@pytest.mark.parametrize("shape", [(-1,), (-1, -1), (-1, 0, 1), (-1, -1, 0, 0, 1)])
def test_neighbours_are_decided_for_certain(vocabulary, shape):
    """By every right rule alike, whatever its random numbers are."""
    like = np.full((len(shape) + 1, vocabulary), 1 / vocabulary, dtype=np.float32)
    mine = TreeRows(like, like[1:], shape, (0,) * len(shape))
    for same in (False, True):
        for place, rows in enumerate(neighbours(mine, same)):
            assert rows.p.dtype == rows.q.dtype == np.float32
            assert (rows.p.shape, rows.q.shape, len(rows.tokens)) == (mine.p.shape, mine.q.shape, len(shape))
            assert not same or rows.parents == shape
            parents, tokens = np.array(rows.parents), np.array(rows.tokens)
            tensors = [torch.from_numpy(array) for array in (rows.p, rows.q, parents, tokens)]
            found = {
                tuple(int(token) for token in answer)
                for _ in range(5)
                for answer in (
                    rules.in_numpy(rows.p, None, parents, tokens),
                    rules.by_parents()(*tensors),
                    rules.by_parents(own=conditional_pmfs)(*tensors),
                )
            }
            assert len(found) == 1
            (emitted,) = found
            assert emitted[:-1] == ((vocabulary - 1,) * (len(emitted) - 1) if place == 0 else (0,) * (len(emitted) - 1))
            assert place or len(emitted) > 1


def test_of_the_second_neighbour_nothing_is_kept():
    rows = certain_tree((-1, -1), np.full((3, 3), 1 / 3), accepted=False)
    assert rows.tokens == (1, 2)
    assert (rows.p == np.eye(3)[0]).all()
