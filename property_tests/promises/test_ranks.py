"""All ranks emit the same tokens: engines that agree in unlike ways, and engines that part at near ties."""

import random
from functools import partial

import numpy as np
import pytest

from specverify.mutants.ranks import RANKS, decoded, one_round, ranked
from specverify.testing import Made, Sizes, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")


def broadcasts_tokens(s):
    """Rank 0 decides a round."""
    return lambda: decoded(s, lambda text: s.group.broadcast(one_round(s, text, random.random)))


def broadcasts_the_text(s):
    """Rank 0 decides the whole text."""
    return lambda: s.group.broadcast(decoded(s, lambda text: one_round(s, text, random.random)), source=0)


def exchanges_rows(s):
    """All ranks have the mean of their rows, and one seed."""

    def mean(model):
        return lambda text: np.mean(s.group.all_gather(model(text)), axis=0)

    def decode(seed):
        draw, same = random.Random(seed).random, s._replace(target=mean(s.target), draft=mean(s.draft))
        return decoded(same, lambda text: one_round(same, text, draw))

    return decode


def last_rank_decides(s):
    """Each round is that of the last rank; a batch of one prompt."""

    def decode(prompts):
        rows = []
        for prompt in prompts:
            own = s._replace(prompt=tuple(prompt))
            rows.append(
                decoded(own, lambda text: s.group.broadcast(one_round(s, text, np.random.random), s.group.size - 1))
            )
        return rows

    return Made(decode, batched=True)


def without_a_fault(s):
    return ranked("", s)


RIGHT = (broadcasts_tokens, broadcasts_the_text, exchanges_rows, last_rank_decides, without_a_fault)
"""Engines whose ranks agree in unlike ways."""


def verdict(make, promise="ranks", **how):
    name = {"ranks": "ranks_agree", "ranks-gloo": "ranks_agree_by_gloo"}[promise]
    (found,) = check_engine(make, promises={promise}, checks=[name], on_fail=None, **how)
    return found


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("make", RIGHT)
def test_ranks_that_agree_hold(make):
    found = verdict(make)
    assert found.status == "holds", found


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("fault", RANKS)
def test_ranks_that_part_are_refuted(fault):
    found = verdict(partial(ranked, fault))
    assert found.status == "refuted", found
    assert "ranks of one engine do not emit the same tokens: rank 0" in found.counterexample.fault


def test_the_number_of_ranks_is_asked_for():
    assert "all 3 ranks" in verdict(broadcasts_tokens, sizes=Sizes(ranks=3)).statement
    with pytest.raises(ValueError, match="expected them with promises="):
        check_engine(broadcasts_tokens, sizes=Sizes(ranks=3))
    with pytest.raises(ValueError, match="no 'ranks' with two calls"):
        check_engine(lambda: [0], lambda: [0], promises={"ranks"})


def test_a_rank_that_raises_is_no_refutation():
    def make(s):
        def decode():
            if s.group.rank:
                raise RuntimeError("no device")
            return [0] * s.horizon

        return decode

    found = verdict(make)
    assert found.status == "unusable"
    assert "rank 1 raised RuntimeError: no device" in found.statement


def by_torch(s, right):
    """Use ``torch.distributed`` itself."""
    import torch
    from torch import distributed

    def new_of(text):
        new = torch.full((2,), -1)
        made = one_round(s, text, random.random)
        new[: len(made)] = torch.tensor(made)
        if right and distributed.is_initialized():
            distributed.broadcast(new, src=0)
        return [token for token in new.tolist() if token >= 0]

    return lambda: decoded(s, new_of)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [broadcasts_tokens, exchanges_rows, lambda s: by_torch(s, True)])
def test_ranks_of_gloo_that_agree_hold(make):
    pytest.importorskip("torch.distributed")
    found = verdict(make, "ranks-gloo")
    assert found.status == "holds", found


@pytest.mark.thorough
@pytest.mark.parametrize(
    "make",
    [
        partial(ranked, "a generator on each rank"),
        partial(ranked, "bonus drawn on each rank"),
        lambda s: by_torch(s, False),
    ],
)
def test_ranks_of_gloo_that_part_are_refuted(make):
    pytest.importorskip("torch.distributed")
    found = verdict(make, "ranks-gloo")
    assert found.status == "refuted", found
