"""Single calls at a real vocabulary: right verifiers hold in every dtype, defects that show only there are named."""

from __future__ import annotations

import os
import re
from itertools import product

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.given_calls import calls_subject
from specverify.testing import BatchedCall, Call, SpeculationRefuted, check_verifier, hard_calls
from test_support.verifiers.samplers import (
    by_lookup,
    lookup,
    lookup_of_u,
    loop,
    not_above,
    numpy_loop,
    of_logits,
    owed,
    race_of_all,
)
from test_support.verifiers.verifiers_at_large import (
    RIGHT,
    SHOWS_EVERYWHERE,
    WRONG,
    floored,
    residual_in_bfloat16,
    with_residual,
)

LARGE, GAMMA = 151_936, 4
DTYPES = ("float32", "bfloat16", "float64", "float16")


def judged(verify, cases, check="call_law"):
    subject = calls_subject(verify, "it", cases)
    return run_check(subject, check_named(check), Checklist((), Conditions(edge=0.0), 600))


def shapes(*names, size=LARGE, gamma=GAMMA, dtype="float32", form="row"):
    return [call for call in hard_calls(size, gamma, dtype, form=form) if not names or call.shape in names]


# Right ones

TOO_COARSE = {("sum by blocks", "bfloat16"), ("sum by blocks", "float16")}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "dtype"), [pair for pair in product(RIGHT, DTYPES) if pair not in TOO_COARSE])
def test_a_right_verifier_holds_at_a_real_vocabulary(name, dtype):
    verdicts = check_verifier(RIGHT[name], cases=hard_calls(LARGE, GAMMA, dtype))
    assert [verdict.check for verdict in verdicts] == ["program_is_its_draws", "call_law", "support_at_boundary_draws"]
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}
    assert verdicts[1].figures["cases"] == 10


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_sum_in_sixteen_bits_is_too_coarse_to_be_judged(dtype):
    """What it adds to the mass of the residual may be lost to rounding, so nothing is said of its law."""
    verdicts = check_verifier(RIGHT["sum by blocks"], cases=hard_calls(LARGE, GAMMA, dtype), on_fail=None)
    assert [verdict.status for verdict in verdicts] == [Status.HOLDS, Status.UNKNOWN, Status.HOLDS]
    assert "may be rounding" in verdicts[1].statement


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_verifier_holds_at_every_hard_call(dtype):
    verdict = judged(RIGHT["multinomial of all at once"], shapes(size=20_000, dtype=dtype))
    assert verdict.status is Status.HOLDS
    assert verdict.figures["cases"] == 10


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_right_verifier_in_numpy_holds(dtype):
    assert check_verifier(numpy_loop(residual=numpy_owed_in_float64), cases=hard_calls(LARGE, GAMMA, dtype))


@pytest.mark.thorough
def test_a_number_that_numpy_compares_in_float16_is_rounded_so_the_law_is_unknown():
    """NumPy rounds a Python float to the dtype of the scalar with which it is compared."""
    verdict = judged(numpy_loop(residual=numpy_owed_in_float64), shapes("at edges", dtype="float16"))
    assert verdict.status is Status.UNKNOWN
    assert "convert rows of 16 bits before numbers are compared with them" in verdict.statement


def numpy_owed_in_float64(p, q):
    left = np.maximum(p.astype(np.float64) - q, 0)
    return left / left.sum() if left.any() else p / p.sum(dtype=np.float64)


@pytest.mark.thorough
def test_sixteen_drafts_are_no_more_than_four_times_four():
    assert check_verifier(RIGHT["multinomial of all at once"], cases=hard_calls(LARGE, 16))


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", ["race", "multinomial of all at once", "multinomial, looked at"])
def test_a_right_verifier_holds_at_the_size_of_a_block(name):
    for size in (8191, 8192, 8193):
        assert judged(RIGHT[name], shapes("at edges", "padded", size=size, gamma=2)).status is Status.HOLDS


@pytest.mark.thorough
def test_three_lines_in_somebodys_test_file():
    rng = np.random.default_rng(0)
    p, q = rng.exponential(size=(3, 50_000)), rng.exponential(size=(2, 50_000))
    p, q = (torch.from_numpy(rows / rows.sum(-1, keepdims=True)) for rows in (p, q))
    call = Call(p, q, torch.multinomial(q, 1)[:, 0])
    assert len(check_verifier(loop(), cases=[call])) == 3
    with pytest.raises(SpeculationRefuted, match=r"token 4.*is emitted with probability 0, the rule gives"):
        check_verifier(WRONG["last block left out"], cases=[call])


# Defects


TOLD = {
    "last block left out": r"token 1(47|48|49|50|51)\d+ is emitted with probability 0, the rule gives 0\.\d",
    "first of each block left out": r"token \d+ is emitted with probability 0, the rule gives 0\.\d",
    "ids in int16": "-[0-9]+ is emitted with probability .*, and is no token of the vocabulary of 151936",
    "residual in float16": r"\d+ tokens are wrong by \S+ together: token \d+ is emitted with probability 0, the rule",
    "1024 candidates": "tokens are wrong by",
    "numpy ids in int16": r"it emits no token for it, where token \d+ is drawn",
    "numpy last block left out": r"token 1(47|48|49|50|51)\d+ is emitted with probability 0, the rule gives 0\.\d",
    "numpy residual in float16": r"\d+ tokens are wrong by \S+ together: token \d+ is emitted with probability 0",
    "floor": r"tokens are wrong by \S+ together: token \d+ is emitted with probability \S+, the rule gives 0",
}


@pytest.mark.thorough(keep=9)
@pytest.mark.parametrize("name", WRONG)
def test_a_defect_that_shows_there_alone_is_refuted_and_its_token_named(name):
    verdict = judged(WRONG[name], shapes("at edges"))
    assert verdict.status is Status.REFUTED
    assert re.search(TOLD[name], verdict.counterexample.then), verdict.counterexample.then
    assert "vocabulary 151936, gamma 4, rows in float32" in verdict.counterexample.let[0]
    if name == "first of each block left out":
        token = int(re.search(r"token (\d+) is emitted", verdict.statement)[1])
        assert token % 8192 == 0


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", sorted(set(WRONG) - SHOWS_EVERYWHERE))
def test_rows_of_a_small_vocabulary_do_not_show_it(name):
    assert judged(WRONG[name], shapes("at edges", "peaked", "padded", size=500, gamma=2)).status is not Status.REFUTED


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_lost_token_is_named_in_every_dtype(dtype):
    """The bound of bfloat16 on a whole law is as large as the law; on a token it is a few percent of that."""
    verdict = judged(WRONG["first of each block left out"], shapes("at edges", dtype=dtype))
    assert verdict.status is Status.REFUTED
    assert "is emitted with probability 0, the rule gives" in verdict.statement


def test_a_padded_tail_that_gets_mass_is_refuted():
    found = judged(with_residual(floored), shapes("padded"))
    assert found.status is Status.REFUTED
    assert "has target probability 0" in found.statement


# What is not refuted


def test_a_residual_in_bfloat16_of_rows_in_float32_is_told_what_it_costs():
    verdict = judged(with_residual(residual_in_bfloat16), shapes("at edges"))
    assert verdict.status is Status.UNKNOWN
    assert "may be rounding: in floats spaced by 0.008 at 1" in verdict.statement
    assert verdict.statement.endswith("Pass cases in float32 or float64, and let the program compute in them")
    assert "in float64" in verdict.statement


@pytest.mark.thorough
def test_a_cumulated_row_in_float32_is_too_coarse_for_so_many_tokens_and_one_in_float64_is_not():
    coarse, fine = (judged(by_lookup(lookup), shapes("flat", dtype=dtype)) for dtype in ("float32", "float64"))
    assert coarse.status is Status.UNKNOWN
    assert "in float64" in coarse.statement
    assert fine.status is Status.HOLDS


def test_a_cumulated_row_in_bfloat16_is_refuted():
    verdict = judged(by_lookup(lookup_in_bfloat16), shapes("at edges", size=32_000, gamma=2))
    assert verdict.status is Status.REFUTED
    assert verdict.figures["tv"] > 0.1
    assert "floats spaced by 0.008 at 1 are too coarse for the sums of this program" in verdict.statement


def lookup_in_bfloat16(u, weights):
    """Wrong: most of 32 000 tokens do not change a sum that is stored in bfloat16."""
    cumulative = weights.bfloat16().cumsum(-1).float()
    return int(torch.searchsorted(cumulative, u * cumulative[-1:], right=True))


def guarded(epsilon):
    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not torch.rand(()) < p[i, token] / (q[i, token] + epsilon):
                left = torch.relu(p[i] - q[i])
                return torch.cat([draft_tokens[:i], torch.multinomial(left / (left.sum() + epsilon), 1)])
        return torch.cat([draft_tokens, torch.multinomial(p[-1], 1)])

    return verify


@pytest.mark.thorough
@pytest.mark.parametrize("epsilon", [1e-30, 1e-12, 1e-10])
def test_a_small_number_against_divisions_by_zero_is_not_refuted(epsilon):
    for shape in ("at edges", "peaked", "flat"):
        assert judged(guarded(epsilon), shapes(shape)).status is not Status.REFUTED


def test_one_that_is_not_small_beside_the_probabilities_is():
    assert judged(guarded(1e-6), shapes("flat")).status is Status.REFUTED


def in_logarithms(p, q, draft_tokens):
    """Right: ratios and rows by their logarithms, as some write them."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.log(torch.rand(())) < torch.log(p[i, token]) - torch.log(q[i, token]):
            noise = -torch.log(torch.empty_like(p[i]).exponential_())
            return [*draft_tokens[:i], (owed(p[i], q[i]).log() + noise).argmax()]
    return [*draft_tokens, (p[-1].log() - torch.log(torch.empty_like(p[-1]).exponential_())).argmax()]


@pytest.mark.thorough
def test_logarithms_hold_too():
    assert judged(in_logarithms, shapes("at edges", "peaked", "mostly zero")).status is Status.HOLDS


def rejecting(p, q, draft_tokens):
    """Lossless, and another rule: every draft is rejected and a token of the target drawn."""
    return torch.multinomial(p[0], 1)


def test_another_rule_is_not_refuted_for_its_law_given_the_drafts():
    verdict = judged(rejecting, shapes("at edges"))
    assert verdict.status is Status.UNKNOWN
    assert "on rows of three tokens it does not follow the rule of speculative sampling either" in verdict.statement


def whole_blocks(p, q, draft_tokens):
    """Wrong: the last block of the residual is left out where it is not full, and all of a small row."""
    left = torch.clamp(p[:-1] - q, min=0)
    left[:, p.shape[1] // 1024 * 1024 :] = 0
    for place, token in enumerate(draft_tokens):
        if not torch.rand(()) < p[place, token] / q[place, token]:
            owed = left[place] if left[place].any() else p[place]
            return torch.cat([draft_tokens[:place], torch.multinomial(owed, 1)])
    return torch.cat([draft_tokens, torch.multinomial(p[-1], 1)])


def test_a_call_of_no_known_rule_is_refuted_where_few_tokens_show_another_law():
    verdict = judged(whole_blocks, shapes("at edges", size=5000, gamma=2))
    assert verdict.status is Status.REFUTED
    assert re.search(
        r"is emitted with probability 0, the rule gives .*; and on rows of three tokens, p = .*, drafts drawn from q: "
        r"new token 1 is 3 with probability 0\.333333, expected 0\.5$",
        verdict.counterexample.then,
    )


def coins_of_the_rows(p, q, draft_tokens):
    """Wrong: the coins have the type of the rows, so that a draft is kept once in 256 times or never."""
    for place, token in enumerate(draft_tokens):
        if not torch.rand((), dtype=p.dtype) * q[place, token].float() < p[place, token].float():
            left = torch.clamp(p[place].float() - q[place].float(), min=0)
            owed = left if left.any() else p[place].float()
            return torch.cat([draft_tokens[:place], torch.multinomial(owed, 1)])
    return torch.cat([draft_tokens, torch.multinomial(p[-1].float(), 1)])


def test_coins_of_16_bits_show_where_drafts_are_rarely_kept():
    rarely = {dtype: shapes("rarely kept", size=4096, gamma=2, dtype=dtype) for dtype in ("bfloat16", "float32")}
    verdict = judged(coins_of_the_rows, rarely["bfloat16"])
    assert verdict.status is Status.REFUTED
    told = verdict.counterexample.then
    assert "is kept with probability 0.00390625, the rule gives 0.00012" in told
    assert told.endswith("(a uniform of 8 bits is 0 that often)")
    assert judged(coins_of_the_rows, rarely["float32"]).status is Status.HOLDS


# Draws at their ends, hidden draws, batches, logits


@pytest.mark.parametrize(
    ("verify", "shape", "match"),
    [
        (loop(keeps=not_above), "mostly zero", r"token \d+ has target probability 0, at position 3"),
        (
            numpy_loop(draw=race_of_all, residual=numpy_owed_in_float64),
            "mostly zero",
            r"token 0 has target probability 0",
        ),
        (by_lookup(lookup_of_u), "padded", "no token|target probability 0|outside the vocabulary"),
    ],
)
def test_a_forbidden_token_at_the_end_of_a_random_number_is_refuted(verify, shape, match):
    found = [
        judged(verify, shapes(shape, size=20_000, dtype=dtype), "support_at_boundary_draws") for dtype in DTYPES[::2]
    ]
    refuted = [verdict for verdict in found if verdict.status is Status.REFUTED]
    assert refuted
    assert re.search(match, refuted[0].statement)
    assert judged(loop(), shapes(shape, size=20_000), "support_at_boundary_draws").status is Status.HOLDS


def test_a_hidden_draw_is_noticed():
    def verify(p, q, draft_tokens):
        hidden = int.from_bytes(os.urandom(2)) % len(p[0])  # equal in two runs in one of 500
        return [hidden] if hidden else loop()(*map(torch.as_tensor, (p, q, draft_tokens)))

    verdict = judged(verify, shapes("flat", size=500), "program_is_its_draws")
    assert verdict.status is Status.UNKNOWN
    assert "it is not a function of the draws that are answered" in verdict.statement
    assert judged(loop(), shapes("flat", size=500), "program_is_its_draws").status is Status.HOLDS


def batch(rows, size, gamma=2):
    rng = np.random.default_rng(1)
    p, q = rng.exponential(size=(rows, gamma + 1, size)) ** 2, rng.exponential(size=(rows, gamma, size)) ** 2
    p, q = (torch.from_numpy(array / array.sum(-1, keepdims=True)).float() for array in (p, q))
    drafts = torch.multinomial(q.reshape(-1, size), 1, generator=torch.Generator().manual_seed(0))  # row 1 may reject
    return BatchedCall(p, q, drafts.reshape(rows, gamma))


def with_one_noise(p, q, draft_tokens, offset=0):
    """A batch: replacements of all positions raced with one noise a row, written into a buffer padded with -1."""
    rows, gamma = draft_tokens.shape
    noise, coins = torch.empty(rows, p.shape[-1]), torch.rand(rows, gamma)
    for row in range(rows):
        noise[row].exponential_()
    recovered = ((p[:, :gamma] - q).clamp(min=0) / noise[:, None]).argmax(-1)
    bonus = torch.multinomial(p[:, gamma], 1)[:, 0]
    found = torch.full((rows, gamma + 1), -1, dtype=torch.int32)
    for row in range(rows):
        for i in range(gamma):
            token = draft_tokens[row, i]
            if not coins[row, i] < p[row, i, token] / q[row, i, token]:
                found[row, i] = recovered[(row + offset) % rows, i]
                break
            found[row, i] = token
        else:
            found[row, gamma] = bonus[row]
    return found


def test_rows_of_a_batch_are_examined_one_by_one():
    verdict = judged(with_one_noise, [batch(4, 40_000)])
    assert verdict.status is Status.HOLDS
    assert verdict.figures["cases"] == 3
    wrong = judged(lambda p, q, draft_tokens: with_one_noise(p, q, draft_tokens, 1), [batch(4, 40_000)])
    assert wrong.status is Status.REFUTED
    assert "row 1 of 4" in wrong.statement


@pytest.mark.thorough
def test_the_rejection_sampler_of_transformers_holds():
    sampler = pytest.importorskip("transformers.generation.utils")._speculative_sampling

    def verify(target_logits, draft_logits, draft_tokens):
        candidates = torch.cat([torch.tensor([7]), draft_tokens])[None]
        return sampler(candidates, draft_logits[None], len(draft_tokens), target_logits[None])[0][0]

    for dtype in ("float32", "float64"):
        verdict = judged(verify, shapes("at edges", "mostly zero", dtype=dtype, form="logits"))
        assert verdict.status is Status.HOLDS


@pytest.mark.thorough
def test_a_verifier_of_logits_that_forgets_its_temperature_is_refuted():
    case = shapes("peaked", size=20_000, form="logits")[0].call()._replace(temperature=0.5)
    assert judged(of_logits(), [case]).status is Status.HOLDS
    assert judged(
        lambda target, draft, drafts, temperature: of_logits()(target, draft, drafts, 1.0), [case]
    ).status is (Status.REFUTED)
