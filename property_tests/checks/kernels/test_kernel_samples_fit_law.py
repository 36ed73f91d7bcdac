"""``check_kernel`` on kernels with their generator inside: right ones hold, planted ones are refuted by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

from specverify.base.verdict import Evidence, Status
from specverify.testing import KernelConvention, SpeculationRefuted, check_kernel
from test_support.kernels import generators
from test_support.kernels.kernels import RIGHT, decide

COARSE = dict(tv=2e-2, vocabularies=(129,), largest_call=2**15)
SEED, OWN = KernelConvention(uniforms="seed"), KernelConvention(uniforms="own")
ROWS, CALLS = "rows_are_independent", "calls_are_independent"
LAST, POSITIONS, LAW = "coins_and_last_draw_are_independent", "positions_are_independent", "samples_fit_law"
PLANTED = {
    "rows_in_pairs": (ROWS, r"rows \d+ and \d+ of 1024 answer alike in all \d+ calls"),
    "lanes": (ROWS, r"rows (\d+) and (\d+) of 1024 answer alike in all \d+ calls"),
    "one_for_all": (ROWS, "answer alike"),
    "overlapping": (ROWS, "answer alike"),
    "offset_ignored": (CALLS, "calls of offset 0 and offset 1 answer alike in all 1024 rows"),
    "next_offset_is_next_row": (CALLS, r"rows on from row \d+ of the call of offset \d+ answer like those"),
    "seed_and_offset_added": (CALLS, "calls of offset 1 and seed 1 more answer alike in all 1024 rows"),
    "seed_ignored": (CALLS, "calls of offset 0 and seed 1 more answer alike in all 1024 rows"),
    "reseeded": (CALLS, "calls of offset 0 and offset 1 answer alike in all 1024 rows"),
    "one_coin": (POSITIONS, "coin of the last draft: p = "),
    "coin_draws_the_last": (LAST, "replacement: p = "),
    "coin_before_replaces": (LAST, "replacement of draft 2: p = "),
    "coarse": (LAW, "against the target's law"),
    "a_little_less": (LAW, "against the target's law"),
}


def examined(name, **options):
    own = name in {"global_generator", "reseeded"}
    return check_kernel(getattr(generators, name), OWN if own else SEED, on_fail=None, **{**COARSE, **options})


@pytest.mark.parametrize("name", ["keyed", "global_generator"])
def test_right_kernels_hold_with_what_would_have_been_seen(name):
    verdicts = examined(name)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}
    assert {verdict.evidence for verdict in verdicts} == {Evidence.STATISTICAL}
    seen = {verdict.check: verdict.figures["tv_detectable"] for verdict in verdicts}
    assert seen[LAW] <= 2e-2
    assert max(seen.values()) <= 0.2


@pytest.mark.thorough
def test_right_kernels_are_not_accused_whatever_the_seed():
    """Thirty runs that may each accuse once in a thousand."""
    for seed in range(30):
        verdicts = examined("keyed", seed=seed, alarm=1e-3, tv=5e-2, vocabularies=())
        assert {verdict.status for verdict in verdicts} == {Status.HOLDS}


@pytest.mark.thorough(keep=14)
@pytest.mark.parametrize("name", PLANTED)
def test_planted_kernels_are_refuted_by_the_check_that_names_them(name):
    check, says = PLANTED[name]
    verdicts = {verdict.check: verdict for verdict in examined(name, tv=5e-3 if check == LAW else 2e-2)}
    assert verdicts[check].status is Status.REFUTED
    assert re.search(says, verdicts[check].statement)


def test_what_depends_in_one_way_only_is_named_by_one_check():
    """The law and the other independences of these are right, and hold: the check is of what it says."""
    for name, refuted in (("seed_ignored", CALLS), ("next_offset_is_next_row", CALLS), ("rows_in_pairs", ROWS)):
        verdicts = examined(name)
        assert [verdict.check for verdict in verdicts if verdict.status is Status.REFUTED] == [refuted]


def test_lanes_are_told_by_their_distance():
    statement = next(verdict.statement for verdict in examined("lanes") if verdict.check == ROWS)
    one, other = map(int, re.search(PLANTED["lanes"][1], statement).groups())
    assert (other - one) % 128 == 0


def test_a_last_block_lost_is_seen_in_a_large_vocabulary():
    """What lies beyond token 1024 is never drawn."""

    def kernel(p, q, drafts, seed, offset):
        return generators.keyed(p[..., :1024], q[..., :1024], drafts % 1024, seed, offset)

    verdicts = check_kernel(kernel, SEED, on_fail=None, **{**COARSE, "vocabularies": (1025,)})
    found = {verdict.check: verdict.status for verdict in verdicts}
    assert found["samples_fit_law_of_many_tokens"] is Status.REFUTED
    assert found[LAW] is Status.HOLDS


def test_a_replacement_by_three_tokens_is_sampled_in_a_large_vocabulary():
    """Of more than two tokens with a positive weight, the second is never drawn in place of a draft."""

    def last(rows, uniforms):
        """Draw by inverse CDF; ``rows`` of residuals do not sum to 1."""
        changed = rows.copy()
        for row in changed:
            open_tokens = np.flatnonzero(row)
            if len(open_tokens) > 2 and row.sum() < 1 - 1e-6:
                row[open_tokens[1]] = 0
        return RIGHT.last(changed, uniforms)

    def kernel(p, q, drafts, seed, offset):
        u = generators.uniforms(seed, offset, len(drafts), drafts.shape[1] + 1)
        parts = RIGHT._replace(last=last)
        return decide(p, q, drafts, generators.full(drafts), u[:, :-1], u[:, -1], parts)

    found = {verdict.check: verdict.status for verdict in check_kernel(kernel, SEED, on_fail=None, **COARSE)}
    assert found["samples_fit_law_of_many_tokens"] is Status.REFUTED
    assert found[LAW] is Status.HOLDS


def test_samples_of_one_seed_repeat():
    first, second, other = (
        [verdict.figures.get("tv_observed") for verdict in examined("keyed", seed=seed)] for seed in (1, 1, 2)
    )
    assert first == second != other


def test_offsets_advance_by_the_step_that_is_promised():
    """A kernel that takes two offsets a call overlaps at a step of one."""

    def kernel(p, q, drafts, seed, offset):
        half = len(drafts) // 2
        u = np.concatenate(
            [
                generators.uniforms(seed, offset, half, drafts.shape[1] + 1),
                generators.uniforms(seed, offset + 1, len(drafts) - half, drafts.shape[1] + 1),
            ]
        )
        return generators.decide(p, q, drafts, generators.full(drafts), u[:, :-1], u[:, -1])

    refuted = check_kernel(kernel, SEED, on_fail=None, **COARSE)
    assert next(verdict for verdict in refuted if verdict.check == CALLS).status is Status.REFUTED
    assert check_kernel(kernel, SEED._replace(offset_step=2), **COARSE)


def test_a_refutation_is_raised_in_words():
    with pytest.raises(
        SpeculationRefuted, match=r"(?s)each of which shows one random.*calls are independent - refuted"
    ):
        check_kernel(generators.offset_ignored, SEED, **COARSE)


def test_what_a_sample_could_not_decide_is_raised():
    """A table that never varies is UNKNOWN, and other samples that fit do not make up for it."""

    def kernel(p, q, drafts, seed, offset):
        return generators.one_for_all(p, q, drafts, seed, offset)

    found = {verdict.check: verdict for verdict in check_kernel(kernel, SEED, on_fail=None, **COARSE)}
    assert found[LAST].status is Status.UNKNOWN
    assert found[LAST].statement.startswith("replacement: what it depends on never varies")
    with pytest.raises(SpeculationRefuted, match=f"not decided: {LAST.replace('_', ' ')}"):
        check_kernel(kernel, SEED, **COARSE)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tv": 0.5}, "tv is 0.5, expected a total variation above 0 and at most 0.2"),
        ({"alarm": 2}, "alarm is 2, expected a probability strictly between 0 and 1"),
        ({"seed": -1}, "the seed is -1, expected a whole number"),
        ({"largest_call": 1}, "largest_call is 1, expected an integer of at least 4"),
    ],
)
def test_numbers_that_are_none_are_refused(options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        check_kernel(generators.keyed, SEED, **options)
