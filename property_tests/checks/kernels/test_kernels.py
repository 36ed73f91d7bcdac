"""``check_kernel`` on kernels with explicit uniforms: right ones hold in every convention, planted ones are named."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from reference import Claim
from specverify.base.verdict import Status
from specverify.testing import KernelConvention, SpeculationRefuted, check_kernel
from test_support.kernels.kernels import (
    CONVENTIONS,
    RIGHT,
    block,
    decide,
    emitted,
    full,
    inverse_cdf,
    plain,
    with_lengths,
)
from test_support.kernels.planted_kernels import PLANTED

SMALL = dict(vocabularies=(129,), rows=2**13)


def statuses(verdicts):
    return {verdict.check: verdict.status for verdict in verdicts}


def named(verdicts, check):
    return next(verdict for verdict in verdicts if verdict.check == check)


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("name", CONVENTIONS)
def test_right_kernels_hold_in_every_convention(name):
    kernel, convention = CONVENTIONS[name]
    verdicts = check_kernel(kernel, KernelConvention(**convention), **SMALL)
    assert set(statuses(verdicts).values()) == {Status.HOLDS}
    assert len(verdicts) == 8


@pytest.mark.thorough(keep=18)
@pytest.mark.parametrize("name", PLANTED)
def test_planted_kernels_are_refuted_by_the_check_that_names_them(name):
    planted = PLANTED[name]
    convention, sizes = KernelConvention(**planted.convention), dict(vocabularies=(129, 1025), rows=2**12)
    verdict = named(check_kernel(planted.kernel, convention, **sizes, on_fail=None), planted.seen_by)
    assert verdict.status is Status.REFUTED
    assert planted.says in verdict.statement


def test_a_kernel_gets_its_arguments_in_the_order_of_their_names():
    def right(draft_token_ids, draft_probs, target_probs, accept_uniforms, final_uniforms):
        return plain(target_probs, draft_probs, draft_token_ids, accept_uniforms, final_uniforms)

    def wrong(draft_token_ids, draft_probs, target_probs, accept_uniforms, final_uniforms):
        return plain(target_probs, draft_probs, draft_token_ids, accept_uniforms * 0.9, final_uniforms)

    assert set(statuses(check_kernel(right, quick=True)).values()) == {Status.HOLDS}
    assert named(check_kernel(wrong, quick=True, on_fail=None), "law_is_target").status is Status.REFUTED


@pytest.mark.parametrize("scale", [1, 0.9])
def test_a_named_parameter_may_stand_between_the_first(scale):
    def kernel(draft_token_ids, lengths, draft_probs, target_probs, accept_uniforms, final_uniforms):
        given = target_probs, draft_probs, draft_token_ids, lengths, accept_uniforms * scale, final_uniforms
        return with_lengths(*given)

    verdict = named(check_kernel(kernel, quick=True, on_fail=None), "law_is_target")
    assert verdict.status is (Status.HOLDS if scale == 1 else Status.REFUTED)


def test_a_refutation_is_raised_with_its_counterexample():
    with pytest.raises(SpeculationRefuted, match=r"(?s)Then .*because.*Let .*law is target - refuted, "):
        check_kernel(PLANTED["replaced from p"].kernel, **SMALL)


def test_the_counterexample_names_row_uniforms_and_what_the_rule_answers():
    """It can be checked by hand: the same row, given alone, answers what it says."""
    kernel = PLANTED["replaced from p"].kernel
    example = named(check_kernel(kernel, on_fail=None, **SMALL), "law_is_target").counterexample
    (because,) = example.because
    words = (
        r"row (\d+) of \d+: drafts \((.*),\), accept uniforms \((.*)\), final uniform (.*) -> \((.*)\), and the rule"
    )
    row, drafts, coins, last, _ = re.match(words, because).groups()
    assert int(row) > 0
    assert "replay" not in because
    rows = [line for line in example.let if line.startswith("after drafts ()")]
    p, q = (
        np.array([float(Fraction(mass)) for mass in re.search(rf"{name} = \(([^)]*)\)", rows[0])[1].split(", ")])
        for name in "pq"
    )
    draft, coin = int(drafts), float(coins)
    assert coin * q[draft] >= p[draft]
    given = np.stack([p, p])[None].astype(np.float32), q[None, None].astype(np.float32), np.array([[draft]])
    lengths, uniforms = np.array([1]), (np.array([[coin]]), np.array([float(last)]))
    got = kernel(*given, lengths, *uniforms)[0]
    wanted = with_lengths(*given, lengths, *uniforms)[0]
    assert f"-> ({got[0]},), and the rule answers ({wanted[0]},)" in because
    assert got[0] != wanted[0]


@pytest.mark.thorough
def test_a_lower_precision_is_neither_held_nor_refuted():
    """Steps a ten thousandth from their places: too far for float32, too near to be a defect."""

    def accepts(p, q, drafts, coins, i):
        return RIGHT.accepts(p, q, drafts, coins + np.float32(1e-4), i)

    def kernel(p, q, drafts, lengths, accept_uniforms, final_uniforms):
        return decide(p, q, drafts, lengths, accept_uniforms, final_uniforms, RIGHT._replace(accepts=accepts))

    verdict = named(check_kernel(kernel, on_fail=None, vocabularies=()), "law_is_target")
    assert verdict.status is Status.UNKNOWN
    assert "is its precision lower, or its rule another?" in verdict.statement


@pytest.mark.thorough
def test_another_rule_than_the_one_declared_is_not_refuted():
    """Block verification is lossless, and accepts no less: it steps at other places, and that is what is said."""
    verdicts = check_kernel(block, on_fail=None, **SMALL)
    assert Status.REFUTED not in statuses(verdicts).values()


@pytest.mark.thorough
def test_a_kernel_that_promises_less_is_held_to_it():
    """At 4 drafts it is unknown: it draws from a row of p at places that the rule does not have."""
    lossless = check_kernel(PLANTED["rejects everything"].kernel, claims={Claim.LOSSLESS}, gammas=(1, 2), **SMALL)
    assert "acceptance_is_optimal" not in statuses(lossless)


@pytest.mark.thorough
def test_the_law_knows_when_rows_mix():
    """Rows at the end of a launch are lost, others in the next look: so it has no law."""
    verdicts = check_kernel(PLANTED["last row ignored"].kernel, on_fail=None, **SMALL)
    assert "beside other rows" in named(verdicts, "law_is_target").statement
    assert named(verdicts, "law_is_target").status is Status.REFUTED


# What is refused


def of_options(options):
    """Take the fields of a convention out of the options."""
    return KernelConvention(**{name: options.pop(name) for name in KernelConvention._fields if name in options})


def answering(answer):
    return lambda p, q, drafts, accept_uniforms, final_uniforms: answer(drafts)


@pytest.mark.parametrize(
    ("answer", "convention", "said"),
    [
        (lambda d: None, {}, "it returned None and has no parameter out, expected tokens [rows, gamma + 1]"),
        (lambda d: d, {}, "it returned tokens of shape [1, 1], expected [1, 2]"),
        (lambda d: [[0]], {}, "it returned list, expected tokens as an array [1, 2]"),
        (lambda d: np.zeros((len(d), 2)), {}, "it returned tokens of float64, expected integers"),
        (lambda d: (d, d), {}, "it returned two things and ends is 'padding', expected tokens alone; if the second is"),
        (lambda d: d, {"ends": "accepted"}, "and ends is 'accepted', expected (tokens, number of accepted drafts)"),
        (
            lambda d: (np.zeros((len(d), 2), int), d),
            {"ends": "emitted"},
            "it returned numbers of tokens of shape [1, 1], expected [1]",
        ),
    ],
)
def test_answers_that_are_none_are_unusable_in_one_sentence(answer, convention, said):
    verdicts = check_kernel(answering(answer), KernelConvention(**convention), gammas=(1,), on_fail=None, **SMALL)
    assert {verdict.status for verdict in verdicts} == {Status.UNUSABLE}
    assert said in verdicts[0].statement


def test_out_without_numbers_is_unusable_where_numbers_are_promised():
    def kernel(p, q, drafts, accept_uniforms, final_uniforms, out):
        out[:] = 0

    verdicts = check_kernel(kernel, KernelConvention(ends="accepted"), on_fail=None, **SMALL)
    assert "it returned None and ends is 'accepted', expected the number of accepted drafts" in verdicts[0].statement


@pytest.mark.parametrize(
    ("kernel", "options", "said"),
    [
        (3, {}, "the kernel is 3, expected something to call"),
        (lambda p, q: 0, {}, "the kernel takes (p, q), expected (p, q, drafts, accept_uniforms, final_uniforms)"),
        (lambda p, q, d: 0, {"uniforms": "seed"}, "expected (p, q, drafts, seed, offset) and beside these lengths"),
        (plain, {"uniforms": "[0,1)"}, "uniforms is '[0,1)', expected one of '[0, 1)', '(0, 1]', 'seed', 'own'"),
        (plain, {"recovery": "gumble"}, "did you mean gumbel?"),
        (plain, {"rule": "tree"}, "rule is 'tree', expected one of 'token', 'block'"),
        (plain, {"ends": "length"}, "ends is 'length', expected one of 'padding', 'emitted', 'accepted'"),
        (plain, {"padding": None}, "padding is None, expected an integer"),
        (plain, {"dtype": "float31"}, "dtype is 'float31', expected the name of a float dtype of numpy"),
        (plain, {"dtype": "int32"}, "dtype is 'int32', expected the name of a float dtype of numpy"),
        (plain, {"dtype": 32}, "dtype is 32, expected the name of a float dtype of numpy"),
        (plain, {"library": "cupy"}, "library is 'cupy', expected one that is installed"),
        (plain, {"rows_per_call": 9}, "check_kernel has no option 'rows_per_call': write largest_call=..."),
        (plain, {"gammas": ()}, "gammas is (), expected a sequence of at least one"),
        (plain, {"vocabularies": (3,)}, "a vocabulary of (3,) is 3, expected an integer of at least 5"),
        (plain, {"rows": 20}, "rows leave 10 for gamma=2, expected at least 22, which one table takes"),
        (plain, {"on_fail": "wran"}, "on_fail is 'wran', expected one of 'raise', 'warn', None"),
        (
            lambda p, q, drafts, lengths, cu_num_draft_tokens, a, f: 0,
            {},
            "takes both lengths and cu_num_draft_tokens, expected one",
        ),
        (lambda p, q, d, a, f, out, out_lengths: 0, {}, "takes out_lengths and ends is 'padding'"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(kernel, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        check_kernel(kernel, of_options(options), **options)


def test_uniforms_of_four_bits_are_seen():
    """Multiples of 1/16 have not the law of thirds and fifths."""

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        coarse = np.floor(final_uniforms * 16) / 16
        return decide(p, q, drafts, full(drafts), accept_uniforms, coarse)

    verdicts = check_kernel(kernel, on_fail=None, **SMALL)
    assert named(verdicts, "law_is_target").status is Status.REFUTED


def test_kernels_may_have_parameters_of_their_own_behind():
    def kernel(p, q, drafts, accept_uniforms, final_uniforms, scale=1.0, lengths=None):
        assert scale == 1.0
        return decide(p, q, drafts, lengths, accept_uniforms, final_uniforms)

    assert check_kernel(kernel, **SMALL)
    assert emitted(np.array([[1, 2]]), np.array([1]), np.array([0])).tolist() == [[1, 0, -1]]
    assert inverse_cdf(np.array([[0.0, 0.5, 0.5]]), np.array([0.5])).tolist() == [2]


def only_accepts(kernel_gamma, wrong):
    """A kernel whose fourth coin is the first, if ``wrong``; it raises beyond ``kernel_gamma`` drafts."""

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        if drafts.shape[1] > kernel_gamma:
            raise ValueError("too many drafts")
        coins = accept_uniforms.copy()
        if wrong:
            coins[:, 3:] = coins[:, :1]
        return decide(p, q, drafts, full(drafts), coins, final_uniforms)

    return kernel


@pytest.mark.parametrize(
    ("gamma", "wrong", "expected", "cases"),
    [(8, True, Status.REFUTED, 3), (8, False, Status.HOLDS, 3), (3, False, Status.HOLDS, 2)],
    ids=["wrong", "right", "for three drafts"],
)
def test_the_law_is_asked_for_four_drafts_where_nobody_says_how_many(gamma, wrong, expected, cases):
    options = dict(vocabularies=(), rows=2**13, checks=["law_is_target"], on_fail=None)
    (found,) = check_kernel(only_accepts(gamma, wrong), **options)
    assert (found.status, found.figures["cases"]) == (expected, cases)
    (named,) = check_kernel(only_accepts(gamma, wrong), gammas=(1, 2), **options)
    assert (named.status, named.figures["cases"]) == (Status.HOLDS, 2)
    (quick,) = check_kernel(only_accepts(gamma, wrong), quick=True, **options)
    assert quick.status is expected


def test_a_field_of_the_convention_that_stands_outside_it_is_named():
    said = "check_kernel has no option 'uniforms': write check_kernel(kernel, KernelConvention(uniforms=...))"
    with pytest.raises(ValueError, match=re.escape(said)):
        check_kernel(plain, uniforms="seed")
    with pytest.raises(ValueError, match="convention is 'seed', expected a KernelConvention"):
        check_kernel(plain, "seed")


def looked_up(weights, uniform):
    return np.searchsorted(np.cumsum(weights), uniform * weights.sum(), side="right")


def beyond_the_end(p, q, drafts, accept_uniforms, final_uniforms):
    """Return the tokens of a kernel whose float32 look-up can run past the end of a row."""
    tokens = np.full((len(drafts), drafts.shape[1] + 1), -1)
    for row, tried in enumerate(drafts):
        for place, token in enumerate(tried):
            if accept_uniforms[row, place] * q[row, place, token] >= p[row, place, token]:
                left = np.maximum(p[row, place] - q[row, place], 0)
                weights = left if left.any() else p[row, place]
                tokens[row, place] = looked_up(weights, final_uniforms[row])
                break
            tokens[row, place] = token
        else:
            tokens[row, -1] = looked_up(p[row, -1], final_uniforms[row])
    return tokens


def test_a_token_outside_the_vocabulary_is_reported_as_such_also_for_other_vocabularies():
    verdicts = check_kernel(beyond_the_end, vocabularies=(129,), rows=2**13, on_fail=None)
    example = named(verdicts, "support_at_rounded_rows").counterexample
    assert re.match(r"\[.*\] comes out, and token (\d+) is not in the vocabulary of \1 tokens, when ", example.then)
    assert any(
        re.match(r"vocabulary 129, .*: \[.*129\] comes out, and token 129 is not in the vocabulary of 129 tokens", line)
        for line in example.because
    )


@pytest.mark.parametrize(("wrong", "status"), [(True, Status.REFUTED), (False, Status.HOLDS)])
def test_a_draw_over_two_shards_of_a_vocabulary_is_examined_in_quick(wrong, status):
    """A wrong draw scales the uniform by the mass of the second shard, in which it looks for the token."""

    def drawn(weights, uniform):
        first, second = np.array_split(weights, [(len(weights) + 1) // 2])
        rest = uniform * weights.sum() - first.sum()
        if rest < 0:
            return int(np.searchsorted(np.cumsum(first), uniform * weights.sum(), side="right"))
        rest = uniform * second.sum() if wrong else rest
        return len(first) + int(np.searchsorted(np.cumsum(second), rest, side="right"))

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        tokens = np.full((len(p), drafts.shape[1] + 1), -1)
        for row, own in enumerate(drafts):
            kept = 0
            while kept < len(own) and accept_uniforms[row, kept] * q[row, kept, own[kept]] < p[row, kept, own[kept]]:
                tokens[row, kept] = own[kept]
                kept += 1
            weights = np.maximum(p[row, kept] - q[row, kept], 0) if kept < len(own) else p[row, kept]
            tokens[row, kept] = drawn(weights, final_uniforms[row])
        return tokens

    verdicts = check_kernel(
        kernel, KernelConvention(dtype="float64", uniforms="[0, 1)"), quick=True, checks=["law_is_target"], on_fail=None
    )
    assert statuses(verdicts) == {"law_is_target": status}


def by_tiles(tile, *, wrong):
    """Return an inverse CDF that finds the tile first. A wrong one subtracts only the tile before, not all before."""

    def last(rows, uniforms):
        result = []
        for row, uniform in zip(rows, uniforms, strict=True):
            masses = np.pad(row, (0, -len(row) % tile)).reshape(-1, tile).astype(np.float64)
            ends = masses.sum(1).cumsum()
            found = int(np.searchsorted(ends, uniform * ends[-1], side="right"))
            before = (masses.sum(1) if wrong else ends)[found - 1] if found else 0.0
            inside = np.searchsorted(masses[found].cumsum(), uniform * ends[-1] - before, side="right")
            inside = min(int(inside), int(np.flatnonzero(masses[found])[-1]))
            result.append(found * tile + inside)
        return np.array(result)

    return last


@pytest.mark.parametrize(("tile", "options"), [(2, {"quick": True}), (32, {"vocabularies": (129,), "rows": 2**12})])
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
def test_an_inverse_cdf_by_tiles_is_examined_with_an_empty_tile_between(ragged, wrong, tile, options):
    """Two tokens of one tile, and one that is two tiles or more before them, show it."""
    parts = RIGHT._replace(last=by_tiles(tile, wrong=wrong))

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        return decide(p, q, drafts, full(drafts), accept_uniforms, final_uniforms, parts)

    def of_lengths(p, q, drafts, lengths, accept_uniforms, final_uniforms):
        return decide(p, q, drafts, lengths, accept_uniforms, final_uniforms, parts)

    found = check_kernel(of_lengths if ragged else kernel, checks=["law_is_target"], on_fail=None, **options)
    assert statuses(found) == {"law_is_target": Status.REFUTED if wrong else Status.HOLDS}
