"""What shows at the fourth draft, in the fifth row or behind ten tokens is looked at without being asked for."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.deep_scenarios import (
    CROWDED,
    FIRST_REJECTIONS,
    FOUR_SIBLINGS,
    LATE_BRANCHES,
    MANY_LATER,
    PAIRED,
    TRUNCATED,
    TWIN_CHAINS,
    TWO_BRANCHES,
    is_of_whole_trees,
    last_rows_open,
)
from specverify.reference import warped
from specverify.run.verify import Checklist, run_check
from specverify.subjects.forms import BATCHED, BATCHED_LOGITS, LOGITS, Form
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import Variant
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject

pytestmark = pytest.mark.usefixtures("unexplained")


def drawn(weights):
    return random.choices(range(len(weights)), list(weights))[0]


def verify(p, q, draft_tokens, coin=lambda i: i, row=lambda i: i, accepts=lambda i: False, bonus=lambda gamma: gamma):
    """Speculative sampling, each part of which may go wrong at one place."""
    gamma = len(draft_tokens)
    coins = [random.random() for _ in range(gamma)]
    for i, token in enumerate(draft_tokens):
        if not (accepts(i) or coins[coin(i)] * q[i, token] < p[i, token]):
            left = np.maximum(p[row(i)] - q[row(i)], 0)
            return [*draft_tokens[:i], drawn(left if left.sum() > 0 else p[i])]
    return [*draft_tokens, drawn(p[bonus(gamma)])]


def verify_rows(p, q, draft_tokens, coin=lambda b: b, gamma=lambda b: None):
    """The same for a batch, a row at a time."""
    rows, width = draft_tokens.shape
    coins = [[random.random() for _ in range(width)] for _ in range(rows)]
    answer = np.full((rows, width + 1), -1)
    for b in range(rows):
        for i, token in enumerate(draft_tokens[b]):
            if i == gamma(b) or coins[coin(b)][i] * q[b, i, token] < p[b, i, token]:
                answer[b, i] = token
                continue
            left = np.maximum(p[b, i] - q[b, i], 0)
            answer[b, i] = drawn(left if left.sum() > 0 else p[b, i])
            break
        else:
            answer[b, width] = drawn(p[b, width])
    return answer


def softmax(logits, temperature):
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(-1)]
    weights = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
    return weights / weights.sum(-1, keepdims=True)


def verify_logits(target_logits, draft_logits, draft_tokens, temperature, raw=99):
    """The same from logits; from row ``raw`` on they are not processed."""
    p, q = softmax(target_logits, temperature), softmax(draft_logits, temperature)
    p[raw:] = softmax(target_logits, 1.0)[raw:]
    return verify(p, q, draft_tokens)


def status_of(subject, check="law_is_target"):
    """Return what one check says of what is looked at beyond the variants of a verifier."""
    return run_check(subject.with_situations(Variant, ()), check_named(check), Checklist(())).status


def verdict_of_rows(verifier):
    return status_of(verifier_subject(verifier, "a verifier"))


@pytest.mark.thorough
def test_a_right_verifier_holds_with_eight_drafts():
    subject = verifier_subject(verify, "a verifier")
    found = run_check(subject.with_situations(Variant, ()), check_named("law_is_target"), Checklist(()))
    assert found.status is Status.HOLDS
    assert found.figures["gamma"] == 8
    assert {variant.label for variant, _ in subject.deep()} == {f"gamma={gamma}" for gamma in range(4, 9)}


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize(
    "wrong",
    [
        {"accepts": lambda i: i >= 3},
        {"accepts": lambda i: i == 7},
        {"row": lambda i: min(i, 2)},
        {"coin": lambda i: i % 4},
        {"coin": lambda i: 0 if i == 5 else i},
        {"bonus": lambda gamma: min(gamma, 3)},
    ],
    ids=["all from the fourth", "the eighth", "residual of the third", "coins of four", "first coin", "bonus"],
)
def test_what_goes_wrong_late_in_a_round_is_refuted(wrong):
    assert verdict_of_rows(partial(verify, **wrong)) is Status.REFUTED


def test_a_verifier_that_is_made_for_fewer_drafts_is_looked_at_with_those():
    def at_most(gamma, p, q, draft_tokens):
        buffer = np.zeros(gamma)
        buffer[: len(draft_tokens)] = draft_tokens
        return verify(p, q, draft_tokens)

    labels = [
        {variant.label for variant, _ in verifier_subject(partial(at_most, gamma), "a verifier").deep()}
        for gamma in (3, 5, 8)
    ]
    assert labels == [{"gamma=2"}, {"gamma=4"}, {f"gamma={gamma}" for gamma in range(4, 9)}]


@pytest.mark.parametrize("gamma", [None, 4, 5, 6, 7])
def test_every_number_of_drafts_up_to_eight_is_examined(gamma):
    def wrong_bonus(p, q, draft_tokens):
        return verify(p, q, draft_tokens, bonus=lambda count: count - (count == gamma))

    subject = verifier_subject(wrong_bonus, "a verifier")
    cases = tuple(case for case in subject.deep() if case[1] in map(last_rows_open, range(4, 8)))
    assert len(cases) == 4
    expected = Status.HOLDS if gamma is None else Status.REFUTED
    assert status_of(subject._replace(deep=lambda: cases)) is expected


@pytest.mark.parametrize(("most", "expected"), [(6, Status.HOLDS), (4, Status.REFUTED), (3, Status.REFUTED)])
def test_rows_of_several_tokens_behind_two_drafts_are_examined(most, expected):
    """A row with more possible tokens than ``most`` loses its least probable one."""

    def without_least(row):
        return np.where(row == row[row > 0].min(), 0, row) if np.count_nonzero(row) > most else row

    def verifier(p, q, draft_tokens):
        gamma = len(draft_tokens)
        kept = [random.random() * q[i, token] < p[i, token] for i, token in enumerate(draft_tokens)]
        count = [*kept, False].index(False)
        left = p[gamma] if count == gamma else np.maximum(p[count] - q[count], 0)
        row = left if left.any() else p[count]
        return [*draft_tokens[:count], drawn(without_least(row) if count > 1 else row)]

    subject = verifier_subject(verifier, "a verifier")
    cases = tuple(case for case in subject.deep() if case[1] in MANY_LATER)
    assert status_of(subject._replace(deep=lambda: cases)) is expected


@pytest.mark.parametrize("form", [LOGITS, BATCHED_LOGITS])
@pytest.mark.parametrize(("unseen", "expected"), [(8, Status.HOLDS), (7, Status.REFUTED), (5, Status.REFUTED)])
def test_greedy_verifiers_are_examined_with_eight_drafts(form, unseen, expected):
    def of_row(target_logits, draft_logits, draft_tokens, temperature):
        if temperature > 0:
            return verify_logits(target_logits, draft_logits, draft_tokens, temperature)
        best = target_logits.argmax(-1).tolist()
        kept = [i >= unseen or best[i] == token for i, token in enumerate(draft_tokens)]
        count = [*kept, False].index(False)
        return [*draft_tokens[:count], best[count]]

    def of_batch(target_logits, draft_logits, draft_tokens, temperature):
        rows = zip(target_logits, draft_logits, draft_tokens, strict=True)
        return [of_row(*row, temperature) for row in rows]

    subject = verifier_subject(of_batch if form.batched else of_row, "a verifier", form=form)
    cases = tuple(case for case in subject.deep() if case[1] in FIRST_REJECTIONS)
    assert len(cases) == 8
    assert status_of(subject._replace(deep=lambda: cases)) is expected


@pytest.mark.thorough
def test_the_gammas_that_are_named_are_not_exceeded():
    assert {variant.label for variant, _ in verifier_subject(verify, "a verifier", (1, 5)).deep()} == {"gamma=5"}
    found = run_check(
        verifier_subject(verify, "a verifier", (10,)).with_situations(Variant, ()),
        check_named("law_is_target"),
        Checklist(()),
    )
    assert (found.status, found.figures["gamma"]) == (Status.HOLDS, 10)


@pytest.mark.thorough
@pytest.mark.parametrize("check", ["law_is_target", "rows_are_independent"])
def test_a_right_verifier_of_batches_holds_in_a_crowd(check):
    assert status_of(verifier_subject(verify_rows, "a verifier", form=BATCHED), check) is Status.HOLDS


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        ({"gamma": lambda b: 0 if b >= 4 else None}, "law_is_target"),
        ({"gamma": lambda b: 3}, "law_is_target"),
        ({"coin": lambda b: min(b, 2)}, "rows_are_independent"),
        ({"coin": lambda b: 0 if b == 4 else b}, "rows_are_independent"),
    ],
    ids=["fifth row", "fourth draft", "a coin of the third row", "a coin of the first row"],
)
def test_what_goes_wrong_in_a_later_row_is_refuted(wrong, check):
    assert (
        status_of(verifier_subject(partial(verify_rows, **wrong), "a verifier", form=BATCHED), check) is Status.REFUTED
    )


def verify_several(p, q, draft_tokens, row_of):
    """The same for a batch, all acceptances before all last tokens; ``row_of`` may return a wrong row for the last."""
    rows, gamma = draft_tokens.shape
    accepted = []
    for b in range(rows):
        coins = [random.random() * q[b, i, token] < p[b, i, token] for i, token in enumerate(draft_tokens[b])]
        accepted.append([*coins, False].index(False))
    answer = np.full((rows, gamma + 1), -1)
    for b, count in enumerate(accepted):
        left = p[b, gamma] if count == gamma else np.maximum(p[b, count] - q[b, count], 0)
        row = left if left.sum() > 0 else p[b, count]
        wrong = row_of(b, accepted, p, q)
        answer[b, : count + 1] = [*draft_tokens[b, :count], drawn(row if wrong is None else wrong)]
    return answer


def _all_accepted(b, accepted, p, q):
    return p[b, -2] if len(accepted) > 1 and min(accepted) == q.shape[1] > 1 else None


def _all_reject_one(b, accepted, p, q):
    return p[b, 1] if len(accepted) > 1 and {*accepted} == {1} and q.shape[1] > 1 else None


def _first_of_batch(b, accepted, p, q):
    left = np.maximum(p[b, 1] - q[b, 0], 0) if q.shape[1] > 1 else np.zeros(1)
    return left if len(accepted) > 1 and b == 0 and accepted[0] == 1 < q.shape[1] and left.sum() > 0 else None


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda b, accepted, p, q: None, Status.HOLDS),
        (_all_accepted, Status.REFUTED),
        (_all_reject_one, Status.REFUTED),
        (_first_of_batch, Status.REFUTED),
    ],
    ids=["right", "all rows accept all", "all rows reject the second", "the first row rejects the second"],
)
def test_what_goes_wrong_if_no_row_of_a_batch_is_certain(wrong, expected):
    subject = verifier_subject(partial(verify_several, row_of=wrong), "a verifier", form=BATCHED)
    cases = tuple(case for case in subject.deep() if case[1] == PAIRED)
    assert status_of(subject._replace(deep=lambda: cases), "rows_are_independent") is expected


@pytest.mark.parametrize(("wrong", "expected"), [(None, Status.HOLDS), (0, Status.REFUTED), (-1, Status.REFUTED)])
def test_rows_without_drafts_at_the_ends_of_a_batch(wrong, expected):
    def verifier(p, q, draft_tokens, lengths):
        answer = [list(verify(p[b, : n + 1], q[b, :n], draft_tokens[b, :n])) for b, n in enumerate(lengths)]
        if wrong is not None and len(answer) > 1 and lengths[wrong] == 0:
            answer[wrong] = [drawn(p[wrong, -1])]
        return answer

    subject = verifier_subject(verifier, "a verifier", form=BATCHED)
    cases = tuple(case for case in subject.deep() if case[1] == CROWDED)
    assert status_of(subject._replace(deep=lambda: cases), "rows_are_independent") is expected


def verify_truncated(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p, wrong):
    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    given.update(wrong(given, target_logits.shape[1]))

    def rows(logits):
        return np.array([warped(lambda _, row=row: row, **given)(()) for row in logits])

    return verify(rows(target_logits), rows(draft_logits) if len(draft_logits) else draft_logits, draft_tokens)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda given, size: {}, Status.HOLDS),
        (lambda given, size: {"top_p": 1.0} if given["min_p"] > 0 else {}, Status.REFUTED),
        (lambda given, size: {"min_p": 0.0} if given["top_p"] < 1 else {}, Status.REFUTED),
        (lambda given, size: {"top_k": size} if given["min_p"] > 0 else {}, Status.REFUTED),
        (lambda given, size: {"min_p": 0.0} if given["top_k"] < size else {}, Status.REFUTED),
        (lambda given, size: {"top_p": 1.0} if given["top_k"] == size else {}, Status.REFUTED),
        (lambda given, size: {"top_k": size, "min_p": 0.0} if given["temperature"] == 1 else {}, Status.REFUTED),
    ],
    ids=["right", "min-p or top-p", "top-p or min-p", "min-p or top-k", "top-k or min-p", "top-p after top-k", "at 1"],
)
def test_each_two_truncations_are_given_together(wrong, expected):
    def verifier(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p):
        return verify_truncated(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p, wrong)

    subject = verifier_subject(verifier, "a verifier", form=LOGITS)
    cases = tuple(case for case in subject.deep() if case[1] == TRUNCATED)
    assert len(cases) == 14
    assert status_of(subject._replace(deep=lambda: cases)) is expected


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("raw", "expected"), [(4, Status.REFUTED), (99, Status.HOLDS)])
def test_rows_of_logits_that_are_not_processed_from_the_fifth_on(raw, expected):
    def verifier(target_logits, draft_logits, draft_tokens, temperature):
        return verify_logits(target_logits, draft_logits, draft_tokens, temperature, raw)

    assert status_of(verifier_subject(verifier, "a verifier", form=LOGITS)) is expected


@pytest.mark.thorough
@pytest.mark.parametrize(("raw", "expected"), [(4, Status.REFUTED), (99, Status.HOLDS)])
def test_rows_of_batches_of_logits_that_are_not_processed_from_the_fifth_on(raw, expected):
    def verifier(target_logits, draft_logits, draft_tokens, temperature):
        given = zip(target_logits, draft_logits, draft_tokens, strict=True)
        return [verify_logits(*row, temperature, raw) for row in given]

    assert status_of(verifier_subject(verifier, "a verifier", form=BATCHED_LOGITS)) is expected


def verify_tree(p, q, parents, tokens, wrong=99, scaled=lambda sibling: True):
    """Recursive rejection of siblings drawn with replacement; at one level it accepts whatever comes.

    What is left after a sibling is made a pmf again where it is ``scaled``.
    """
    node, text = -1, []
    while True:
        row, children = p[node + 1].copy(), [child for child, parent in enumerate(parents) if parent == node]
        for sibling, child in enumerate(children):
            token = tokens[child]
            if len(text) == wrong or random.random() * q[child, token] < row[token]:
                node = child
                text.append(token)
                break
            left = np.maximum(row - q[child], 0)
            row = (left / left.sum() if scaled(sibling) else left) if left.sum() > 0 else row
        else:
            return [*text, drawn(row)]


@pytest.mark.thorough
@pytest.mark.parametrize(("wrong", "expected"), [(99, Status.HOLDS), (2, Status.REFUTED), (3, Status.REFUTED)])
def test_levels_of_a_tree_that_the_ordinary_trees_do_not_have(wrong, expected):
    def verifier(p, q, parents, tokens):
        return verify_tree(p, q, parents, tokens, wrong)

    subject = tree_subject(verifier, "a verifier", Form(drafts="with_replacement"))
    assert status_of(subject) is expected
    own = tree_subject(verifier, "a verifier", Form(drafts="with_replacement"), ((-1, 0),)).deep()
    assert own
    assert all(is_of_whole_trees(scenario) for _, scenario in own)


def verify_branches(p, q, parents, tokens, q_of):
    """Recursive rejection; ``q_of(path, child)`` is the node whose row of q is taken for ``child``."""
    node, path = -1, []
    while True:
        row, children = p[node + 1].copy(), [child for child, parent in enumerate(parents) if parent == node]
        gone = []
        for child in children:
            token = tokens[child]
            mine = q[q_of(parents, path, child)].copy()
            mine[gone] = 0
            mine = mine / mine.sum() if mine.sum() > 0 else mine
            if random.random() * mine[token] < row[token]:
                node = child
                path.append(child)
                break
            left = np.maximum(row - mine, 0)
            row = left / left.sum() if left.sum() > 0 else row
            gone.append(token)
        else:
            return [*(tokens[child] for child in path), drawn(row)]


def of_first_branch(level, parents, path, child):
    """Return the first node at the level of ``child`` if that is ``level``, else ``child``."""
    if len(path) != level:
        return child
    nodes = [-1]
    for _ in range(level + 1):
        nodes = [node for node, parent in enumerate(parents) if parent in nodes]
    return nodes[0]


@pytest.mark.parametrize(
    ("shape", "q_of", "expected"),
    [
        (TWO_BRANCHES, lambda parents, path, child: child, Status.HOLDS),
        (TWO_BRANCHES, partial(of_first_branch, 1), Status.REFUTED),
        (LATE_BRANCHES, lambda parents, path, child: child, Status.HOLDS),
        (LATE_BRANCHES, partial(of_first_branch, 2), Status.REFUTED),
        (TWIN_CHAINS, partial(of_first_branch, 2), Status.REFUTED),
    ],
    ids=["right", "q of the other branch", "right one level deeper", "the same one level deeper", "in chains"],
)
def test_two_branches_of_a_tree_have_rows_of_their_own(shape, q_of, expected):
    def verifier(p, q, parents, tokens):
        return verify_branches(p, q, parents, tokens, q_of)

    subject = tree_subject(verifier, "a verifier", Form(drafts="without_replacement"))
    cases = tuple(case for case in subject.deep() if f"parents {shape} " in case[0].label)
    assert status_of(subject._replace(deep=lambda: cases)) is expected


@pytest.mark.parametrize(("wrong", "expected"), [(9, Status.HOLDS), (3, Status.REFUTED), (2, Status.REFUTED)])
def test_a_fourth_sibling_of_several_tokens_is_examined(wrong, expected):
    """From the index ``wrong`` on, a sibling is tested with the q of the sibling before it."""

    def verifier(p, q, parents, tokens):
        row, mine, emitted = p[0].copy(), q[0].copy(), []
        for sibling, token in enumerate(tokens):
            if random.random() * mine[token] < row[token]:
                return [token, drawn(p[sibling + 1])]
            left = np.maximum(row - mine, 0)
            row = left / left.sum() if left.sum() > 0 else np.where(np.isin(range(len(row)), tokens), 0.0, 1.0)
            if sibling + 1 < wrong:
                mine[token] = 0
                mine = mine / mine.sum() if mine.sum() > 0 else mine
        return [*emitted, drawn(row)]

    subject = tree_subject(verifier, "a verifier", Form(drafts="without_replacement"))
    cases = tuple(case for case in subject.deep() if case[1] == FOUR_SIBLINGS)
    assert len(cases) == 1
    assert status_of(subject._replace(deep=lambda: cases)) is expected


@pytest.mark.thorough
def test_what_is_left_after_a_third_sibling_matters_to_a_fourth():
    def verifier(p, q, parents, tokens):
        return verify_tree(p, q, parents, tokens, scaled=lambda sibling: sibling != 2)

    assert status_of(tree_subject(verifier, "a verifier", Form(drafts="with_replacement"))) is Status.REFUTED


def engine(scenario, gamma=4, crop=lambda length, rejected: length):
    """An engine that drafts gamma tokens whatever is wanted; what it holds is a list of tokens."""

    def decode():
        text, held = list(scenario.prompt), []
        while len(text) < len(scenario.prompt) + scenario.horizon:
            drafts, q, p = [], [], []
            for _ in range(gamma):
                q.append(scenario.draft((*text, *drafts)))
                drafts.append(drawn(q[-1]))
            for token in (*text[len(held) :], *drafts):
                held.append(token)
                p.append(scenario.target(tuple(held)))
            new = verify(np.array(p[-gamma - 1 :]), np.array(q), drafts)
            del held[crop(len(text) + len(new) - 1, gamma + 1 - len(new)) :]
            text += new
        return text[len(scenario.prompt) :]

    return decode


def verdict_of_engine(make):
    return run_check(made_subject(make, "an engine"), check_named("law_is_target"), Checklist(()))


@pytest.mark.thorough
def test_a_right_engine_that_drafts_more_than_is_wanted_holds():
    found = verdict_of_engine(engine)
    assert found.status is Status.HOLDS
    assert found.figures["skipped"] > 0


@pytest.mark.parametrize(
    "crop",
    [
        lambda length, rejected: length + (rejected > 2),
        lambda length, rejected: length + (length > 12 and rejected > 0),
    ],
    ids=["three rejected", "a long text"],
)
def test_an_engine_whose_cache_goes_wrong_late_is_refuted(crop):
    subject = made_subject(partial(engine, crop=crop), "an engine")
    late = [program for program in subject.programs if "certain" in program.name]
    found = run_check(subject.with_programs(tuple(late)), check_named("law_is_target"), Checklist(()))
    assert found.status is Status.REFUTED
