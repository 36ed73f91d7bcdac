"""What the reference is handed: garbage is answered by one sentence, never by garbage."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from reference import (
    Parts,
    Sampled,
    Task,
    accept_probability,
    acceptance_statistics,
    accepted_ratio,
    argmax,
    assembled,
    autoregressive_generate,
    chain,
    chain_decoder,
    check_pmf,
    checked_model,
    commit,
    confidence,
    constant,
    crop,
    entropy_adaptive,
    entropy_gamma,
    excess_law,
    flip,
    from_parts,
    generate,
    greedy_batched,
    greedy_law,
    inverse_cdf,
    inverse_cdf_batched,
    keep_lengths,
    lookup,
    min_p,
    model_drafter,
    nasd_generate,
    ngram_drafter,
    ngram_table,
    normalized_entropy,
    one_hot,
    overlap,
    point_on_argmax,
    prompt_lookup_drafter,
    repetition_penalty,
    residual,
    softmax,
    speculative_generate,
    tokens_to_feed,
    top_k,
    top_p,
    top_tokens,
    total_variation,
    verify_batched,
    warped,
)
from reference.algorithms import speculative_sampling
from reference.drafters.model import greedy_drafter
from reference.drafters.self_draft import partial_model
from reference.kv_cache import check_croppable, keep_path, tree_depths, tree_mask, tree_path, window_crop
from reference.lengths.bandit import bandit
from reference.lengths.entropy_stopping import entropy_stopping
from reference.lengths.gating import Gate, dropout_variance, entropy, hard_ratio, margin
from reference.verifiers.sample_and_match import sample_and_match
from test_support.laws.rational import always

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
EXACT = np.array([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], dtype=object)
NAN = np.array([0.5, np.nan, 0.5])
PAIRS = (residual, overlap, total_variation)


def model(tokens):
    """Return P, after any text."""
    return P


def refused(call):
    """Return the sentence in which ``call`` is refused."""
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("function", PAIRS)
@pytest.mark.parametrize(
    ("p", "q", "sentence"),
    [
        (NAN, Q, "p contains NaN"),
        (P, NAN, "q contains NaN"),
        (P / 2, Q, "p sums to 0.5, expected 1"),
        (P, Q * 3, "q sums to 3.0, expected 1"),
        (EXACT * 2, EXACT, "p sums to 2, expected 1"),
        (np.array([1.5, -0.5, 0.0]), Q, "p has a negative entry"),
        (np.stack([P, P]), np.stack([Q, Q]), "p is an array of shape (2, 3), expected a 1-D array"),
        (P[:2] / P[:2].sum(), Q, "p has 2 tokens, q has 3; expected one size"),
        (P[:0], Q[:0], "p is an array of shape (0,), expected a 1-D array"),
        ([0.5, 0.5], Q, "p is list, expected a 1-D array"),
        (P, None, "q is NoneType, expected a 1-D array"),
    ],
)
def test_what_is_no_pair_of_pmfs_is_refused(function, p, q, sentence):
    assert sentence in refused(lambda: function(p, q))


@pytest.mark.parametrize("pmfs", [(P, Q), (EXACT, EXACT[::-1]), (P.astype(np.float32), Q.astype(np.float32))])
def test_pmfs_of_every_kind_are_taken(pmfs):
    p, q = pmfs
    assert abs(sum(residual(p, q).tolist()) - 1) < 1e-6
    assert abs(overlap(p, q) + total_variation(p, q) - 1) < 1e-6
    assert 0 <= accept_probability(p, q, np.int64(1)) <= 1


def test_masses_that_are_no_pmf_have_a_function_of_their_own():
    assert excess_law(EXACT, EXACT * Fraction(1, 2)).tolist() == EXACT.tolist()
    assert "p has 3 tokens, q has 2" in refused(lambda: excess_law(P, P[:2]))


@pytest.mark.parametrize("token", [-1, 3, True, 1.0, "1", None])
@pytest.mark.parametrize(
    "call",
    [
        lambda token: accept_probability(P, Q, token),
        lambda token: accept_probability(EXACT, EXACT, token),
        lambda token: one_hot(token, P),
        lambda token: repetition_penalty(P, (0, token), 1.5),
    ],
)
def test_a_token_that_is_none_is_refused(call, token):
    assert refused(lambda: call(token)).startswith(f"token {token!r} is outside the vocabulary 0..2")


@pytest.mark.parametrize("token", [-1, True, 1.0, "1", None])
@pytest.mark.parametrize(
    "call",
    [
        lambda prompt: autoregressive_generate(model, prompt, max_new_tokens=1),
        lambda prompt: speculative_generate(model, model, prompt, max_new_tokens=1),
        lambda prompt: nasd_generate(model, (0,), max_new_tokens=1, eos=prompt),
    ],
)
def test_a_prompt_of_anything_but_tokens_is_refused(call, token):
    assert re.match(rf"a token of (the prompt|eos) is {token!r}, expected", refused(lambda: call((0, token))))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: accept_probability(NAN, Q, 1), "p gives token 1 nan and q 0.3, expected probabilities"),
        (lambda: accept_probability(-P, Q, 1), "p gives token 1 -0.3 and q 0.3, expected probabilities"),
        (lambda: accept_probability(P * -1.5, P * -1.0, 1), "p gives token 1 -0.44999999999999996 and q -0.3"),
        (lambda: argmax(np.zeros(0)), "the row of argmax is an array of shape (0,)"),
        (lambda: argmax(NAN), "the argmax of an array with NaN"),
        (lambda: argmax(np.zeros((2, 2))), "the row of argmax is an array of shape (2, 2)"),
        (lambda: top_tokens(P, -1), "the number of tokens is -1, expected an integer of at least 0"),
        (lambda: softmax(np.zeros((2, 2))), "logits are an array of shape (2, 2), expected a 1-D array"),
        (lambda: softmax(np.zeros(0)), "logits are an array of shape (0,)"),
        (lambda: softmax([0.0, 1.0]), "logits are list"),
        (lambda: softmax(P, float("inf")), "temperature is inf, expected a number >= 0"),
        (lambda: softmax(P, "1"), "temperature is '1', expected a number >= 0"),
        (lambda: top_k(P, 1.5), "top_k is 1.5, expected at least 1, an integer"),
        (lambda: top_k(P, True), "top_k is True, expected at least 1"),
        (lambda: top_k(P * 2, 1), "the pmf to truncate sums to 2.0"),
        (lambda: top_p(P, float("nan")), "top_p is nan, expected a number in (0, 1]"),
        (lambda: top_p(NAN, 0.5), "the pmf to truncate contains NaN"),
        (lambda: min_p(P, "half"), "min_p is 'half', expected a number in [0, 1]"),
        (lambda: warped(model, temperature=-1.0), "temperature is -1.0"),
        (lambda: warped(model, top_k=0), "top_k is 0"),
        (lambda: warped(model, top_p=0), "top_p is 0"),
        (lambda: warped(model, min_p=2), "min_p is 2"),
        (lambda: warped(model, repetition_penalty=0), "repetition_penalty is 0"),
        (lambda: inverse_cdf(P, 1.0), "the uniform is 1.0, expected a number in [0, 1)"),
        (lambda: inverse_cdf(P, float("nan")), "the uniform is nan, expected a number in [0, 1)"),
        (lambda: inverse_cdf(P * 0, 0.5), "the pmf is [0.0, 0.0, 0.0], expected an outcome of positive"),
        (lambda: inverse_cdf(EXACT * 0, 0.5), "expected an outcome of positive probability"),
        (lambda: inverse_cdf(P[:0], 0.5), "the pmf is [], expected an outcome of positive probability"),
        (lambda: Sampled(0).categorical(P / 2, ("a",)), "the pmf at ('a',) sums to 0.5"),
        (lambda: keep_lengths(2.5, 1, 1), "known is 2.5, expected an integer"),
        (lambda: keep_lengths(2, 1.5, 1), "gamma is 1.5, expected an integer"),
        (lambda: keep_lengths(2, 1, True), "accepted is True, expected an integer"),
        (lambda: keep_lengths(2, 1, 1, "3"), "draft_held is '3', expected an integer"),
        (lambda: tokens_to_feed((0, 1), 0.5), "held is 0.5, expected an integer"),
        (lambda: crop(np.zeros((1, 4, 2)), 1.0), "keep is 1.0, expected an integer"),
        (lambda: crop(np.zeros(4), 1), "axis is -2, expected one of the 1 axes"),
        (lambda: crop([1, 2], 1), "entries is [1, 2], expected an array of keys or values"),
        (lambda: crop(np.zeros((4, 2)), 1, axis=2), "axis is 2, expected one of the 2 axes"),
        (lambda: window_crop(True, 1, 0, 3), "held is True, expected an integer"),
        (lambda: window_crop(4, True, 2, 3), "stored is True, expected an integer"),
        (lambda: window_crop(4, 4, True, 3), "keep is True, expected an integer"),
        (lambda: bandit(True, 1, 1), "arms is True, expected"),
        (lambda: bandit(0, 1, 1), "arms is 0, tries 1 and cost 1, expected at least 1, 1 and 0"),
        (lambda: bandit(1, 0, 1), "arms is 1, tries 0"),
        (lambda: bandit(1, 1, -1), "tries 1 and cost -1"),
        (lambda: entropy_stopping(0.5, 0.1, True), "gamma is True, expected"),
        (lambda: entropy_stopping(0.5, -0.1, 2), "scale is -0.1, expected a factor >= 0"),
        (lambda: window_crop(4, 5, 2, 3), "5 of 4 entries are stored"),
        (lambda: window_crop(4, 4, 2, 0), "the window is 0, expected an integer of at least 1"),
        (lambda: check_croppable("keys"), "the names is 'keys', expected a sequence of names"),
        (lambda: tree_depths((-1, 0.0)), "node 1 has parent 0.0"),
        (lambda: tree_path((-1, 0), 2), "the node is 2, expected an integer from -1 to 1"),
        (lambda: tree_path((0,), 0), "node 0 has parent 0, expected an earlier node"),
        (lambda: tree_mask((-1,), 0), "the number of known tokens is 0, expected an integer of at least 1"),
        (lambda: keep_path(np.zeros((1, 1, 4, 2)), -1, ()), "the number of known tokens is -1"),
        (lambda: keep_path(np.zeros((1, 1, 4, 2)), 1, (0.0,)), "node 0 of the path is 0.0, expected an integer"),
        (lambda: autoregressive_generate(None, (0,), max_new_tokens=1), "target is None, expected a callable"),
        (lambda: speculative_generate(model, 3, (0,), max_new_tokens=1), "draft is 3, expected a callable"),
        (lambda: autoregressive_generate(model, (0,), max_new_tokens=1.5), "max_new_tokens is 1.5, expected an"),
        (lambda: autoregressive_generate(model, (0,), max_new_tokens=1, seed=-1), "the seed is -1, expected"),
        (lambda: autoregressive_generate(model, 0, max_new_tokens=1), "the prompt is 0, expected a sequence"),
        (lambda: entropy_gamma(P, 3, 1), "gamma_min is 3 and gamma_max is 1, expected gamma_min <= gamma_max"),
        (lambda: chain((0, 1), (P,)), "the draft has 2 tokens and 1 pmfs, expected one, or None, for each"),
        (lambda: softmax(np.array([True, False])), "logits hold bool, expected floats"),
        (lambda: softmax(EXACT), "logits hold object, expected floats"),
        (lambda: tokens_to_feed(None, 0), "tokens is None, expected a sequence of token ids"),
        (lambda: lookup((0, 1, 0), 1.5, 1), "max_ngram is 1.5, expected an integer"),
        (lambda: lookup((0, 1, 0), 1, None), "count is None, expected an integer"),
        (lambda: acceptance_statistics(5), "rounds is 5, expected the rounds of a generation"),
    ],
)
def test_garbage_is_refused_in_one_sentence(call, sentence):
    assert sentence in refused(call)


@pytest.mark.parametrize(
    "row",
    [
        None,
        "ab",
        {0: 1.0},
        np.array([None, None]),
        np.array(["a", "b"]),
        ["a", "b"],
        [0.5, None],
        np.array([0.5, 0.5j]),
        np.array([0.5, 0.5j], dtype=object),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "call",
    [
        lambda row: check_pmf(row, "p"),
        argmax,
        point_on_argmax,
        normalized_entropy,
        entropy,
        margin,
        softmax,
        lambda row: one_hot(3, row),
        lambda row: top_tokens(row, 1),
        lambda row: top_k(row, 1),
        lambda row: top_p(row, 0.5),
        lambda row: min_p(row, 0.5),
        lambda row: inverse_cdf(row, 0.5),
        lambda row: entropy_gamma(row, 1, 2),
        lambda row: repetition_penalty(row, (0,), 2),
        lambda row: residual(row, Q[:2] / Q[:2].sum()),
        lambda row: Sampled(0).categorical(row, ("a",)),
        lambda row: checked_model(always(row), "target")((0,)),
    ],
)
def test_a_row_that_holds_no_numbers_is_refused(call, row):
    refused(lambda: call(row))


@pytest.mark.parametrize("row", [[0.5, 0.3, 0.2], (0.5, 0.3, 0.2), EXACT.tolist()])
@pytest.mark.parametrize(
    "function",
    [
        argmax,
        point_on_argmax,
        normalized_entropy,
        entropy,
        margin,
        lambda row: one_hot(1, row),
        lambda row: top_tokens(row, 2),
        lambda row: top_k(row, 2),
        lambda row: top_p(row, 0.5),
        lambda row: min_p(row, 0.5),
        lambda row: inverse_cdf(row, 0.6),
        lambda row: entropy_gamma(row, 1, 4),
    ],
)
def test_a_row_may_be_a_list_or_a_tuple(function, row):
    assert np.array_equal(function(row), function(check_pmf(row, "p")))


@pytest.mark.parametrize("row", [NAN, P * 2, np.array([1.5, -0.5]), P * 0])
@pytest.mark.parametrize("function", [normalized_entropy, lambda row: entropy_gamma(row, 1, 2)])
def test_an_entropy_is_that_of_a_pmf(function, row):
    assert refused(lambda: function(row)).startswith("the pmf ")


def test_a_symbolic_row_is_left_to_its_owner():
    class Symbol:
        """Stands for a number without a value."""

        def __sub__(self, other):
            return self

        __mul__ = __sub__

    row = np.array([Symbol(), Symbol()])
    assert check_pmf(row, "p") is row
    assert check_pmf([0.5, Symbol()], "p").dtype == object


@pytest.mark.parametrize("model", [None, "gpt2", P, 3])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda model: checked_model(model, "target"), "target"),
        (model_drafter, "draft"),
        (greedy_drafter, "draft"),
        (warped, "logits_model"),
        (lambda model: entropy_adaptive(model, 1, 2), "raw_draft"),
        (lambda model: hard_ratio(model, Gate(), 1, 0.5, 2), "draft"),
        (lambda model: dropout_variance((always(P), model), 0.5, 2), "a pass"),
        (lambda model: partial_model(model, always(P), 1, 2), "target"),
        (lambda model: partial_model(always(P), model, 1, 2), "draft"),
        (from_parts, "parts"),
        (lambda model: chain_decoder(Task(always(P)), model_drafter(always(Q)), constant(1), model), "verify"),
        (lambda model: generate(speculative_sampling.build(Task(always(P), always(Q))), (0,), model), "draws"),
    ],
)
def test_what_cannot_be_called_is_no_model(call, name, model):
    assert re.match(rf"{name}(\.categorical)? is .*, expected a ", refused(lambda: call(model)))


@pytest.mark.parametrize("other", [None, "x", {}, (0,)])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (ngram_drafter, "table"),
        (lambda other: greedy_law(other, (0,)), "task"),
        (lambda other: assembled(other, Parts(model_drafter(always(Q)), constant(1), sample_and_match)), "task"),
        (lambda other: assembled(Task(always(P)), other), "parts"),
        (lambda other: chain_decoder(Task(always(P)), other, constant(1), sample_and_match), "drafter"),
        (lambda other: chain_decoder(Task(always(P)), model_drafter(always(Q)), other, sample_and_match), "length"),
        (lambda other: generate(other, (0,), Sampled(0)), "decoder"),
        (lambda other: acceptance_statistics([other]), "an element of the rounds"),
    ],
)
def test_a_part_of_another_class_is_refused(call, name, other):
    assert re.match(rf"{name} is .*, expected an instance of ", refused(lambda: call(other)))


@pytest.mark.parametrize("value", [None, "1", 0.5j, float("nan")])
@pytest.mark.parametrize(
    "call",
    [
        lambda value: confidence(value, 2),
        lambda value: accepted_ratio(low=value),
        lambda value: accepted_ratio(high=value),
        lambda value: entropy_adaptive(always(P), 1, 2, value),
        lambda value: entropy_stopping(value, 0.1, 2),
        lambda value: entropy_stopping(0.5, value, 2),
        lambda value: flip(Sampled(0), value, ("a",)),
        lambda value: inverse_cdf(P, value),
        lambda value: inverse_cdf(EXACT, value),
    ],
)
def test_a_number_that_is_none_is_refused(call, value):
    refused(lambda: call(value))


@pytest.mark.parametrize("value", [None, "2", 1.5, -1])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (ngram_table, "n-gram order"),
        (prompt_lookup_drafter, "max_ngram"),
        (lambda value: ngram_drafter(ngram_table(2), value), "filler_top_k"),
        (lambda value: entropy_gamma(P, value, 2), "gamma_min"),
        (lambda value: entropy_gamma(P, 0, value), "gamma_max"),
        (lambda value: commit((0, 1), value, ()), "remaining"),
    ],
)
def test_a_count_that_is_none_is_refused(call, name, value):
    assert re.match(rf"{name} is {value!r}, expected an? ", refused(lambda: call(value)))


@pytest.mark.parametrize("tokens", [None, 0, (0, -1), "ab"])
@pytest.mark.parametrize(
    "call",
    [
        lambda tokens: lookup(tokens, 2, 1),
        lambda tokens: prompt_lookup_drafter(eos=tokens),
        lambda tokens: greedy_law(Task(always(P), horizon=1), tokens),
        lambda tokens: repetition_penalty(P, tokens, 2),
    ],
)
def test_a_text_of_anything_but_tokens_is_refused(call, tokens):
    refused(lambda: call(tokens))


def test_a_source_of_samples_is_seeded_or_given():
    for rng in (True, "0", 1.5, -1, [0.5], object()):
        assert "expected a generator of NumPy, or an integer of at least 0" in refused(lambda rng=rng: Sampled(rng))
    sources = (3, np.int64(3), np.random.default_rng(3), np.random.SeedSequence(3), [3])
    first = [Sampled(source).categorical(P, ("a",)) for source in sources]
    assert first == [first[0]] * 5


def batch_of_one():
    """Return the arguments of ``verify_batched`` for one row with one draft."""
    return {
        "p": np.full((1, 2, 2), 0.5),
        "q": np.full((1, 1, 2), 0.5),
        "draft_tokens": np.zeros((1, 1), dtype=np.int64),
        "lengths": np.ones(1, dtype=np.int64),
        "accept_uniforms": np.zeros((1, 1)),
        "final_uniforms": np.zeros(1),
    }


def test_arrays_of_two_libraries_are_refused():
    torch = pytest.importorskip("torch")
    given = batch_of_one()
    like_p = "torch.Tensor, expected an array of the library of p, numpy.ndarray"
    for name in list(given)[1:]:
        other = given | {name: torch.tensor(given[name])}
        assert refused(lambda other=other: verify_batched(**other)) == f"{name} is {like_p}"
        if name in {"draft_tokens", "lengths"}:
            batch = (other["p"], other["draft_tokens"], other["lengths"])
            assert refused(lambda batch=batch: greedy_batched(*batch)) == f"{name} is {like_p}"
    assert refused(lambda: verify_batched(**given | {"p": torch.tensor(given["p"])})).startswith("q is numpy.ndarray, ")
    assert "uniforms is torch.Tensor" in refused(lambda: inverse_cdf_batched(np.ones((1, 2)), torch.zeros(1)))
    assert "uniforms is [0.5], expected an array" in refused(lambda: inverse_cdf_batched(np.ones((1, 2)), [0.5]))
    for function in (*PAIRS, excess_law, lambda p, q: accept_probability(p, q, 0)):
        assert refused(lambda function=function: function(P, torch.tensor(Q))) == f"q is {like_p}"
    weights = torch.nn.Parameter(torch.tensor(P), requires_grad=False)
    assert float(overlap(weights, torch.tensor(Q))) == overlap(P, Q)


def test_a_batch_of_other_types_is_refused():
    given = batch_of_one()
    assert verify_batched(**given).emitted.shape == (1, 2)
    for name, values in given.items():
        kind = "floats" if values.dtype.kind == "f" else "integers"
        other = given | {name: values.astype(np.int64 if kind == "floats" else np.float64)}
        assert re.match(f"{name} holds .*, expected {kind}", refused(lambda other=other: verify_batched(**other)))
    rows = r"\Ap is \[0\.5\], expected an array \[batch, gamma \+ 1, vocabulary\]"
    assert re.match(rows, refused(lambda: verify_batched(**given | {"p": [0.5]})))
    assert "q is [0.5, 0.5], expected an array" in refused(lambda: verify_batched(**given | {"q": [0.5, 0.5]}))
    assert "weights is [0.5], expected an array [batch, v" in refused(lambda: inverse_cdf_batched([0.5], np.zeros(1)))
    assert "weights has shape (2,)" in refused(lambda: inverse_cdf_batched(np.ones(2), np.zeros(1)))
    assert "uniforms has shape (2,)" in refused(lambda: inverse_cdf_batched(np.ones((1, 2)), np.zeros(2)))


def test_what_is_at_the_edge_is_taken():
    assert crop(np.zeros(4), 1, axis=-1).shape == (1,)
    assert bandit(1, 1, 0).plan(bandit(1, 1, 0).init, (0,)).gamma == 1
    assert not entropy_stopping(0.0, 0, 2).stop_after(P, 0)
