"""All ranks emit the same tokens: engines that agree in unlike ways, and engines that part at near ties."""

import random

import numpy as np
import pytest

from specverify.testing import Made, Sizes, check_engine


def inverse(pmf, u):
    return min(int(np.searchsorted(np.cumsum(pmf), u, side="right")), len(pmf) - 1)


def one_round(s, text, draw):
    """Return one draft and its verification, on one rank."""
    q = s.draft(text)
    draft = inverse(q, draw())
    p = s.target(text)
    if draw() < p[draft] / q[draft]:
        return (draft, inverse(s.target((*text, draft)), draw()))
    left = np.maximum(p - q, 0)
    left = left if left.sum() > 0 else p
    return (inverse(left / left.sum(), draw()),)


def decoded(s, new_of):
    new = ()
    while len(new) < s.horizon:
        new += tuple(new_of(s.prompt + new))
    return new[: s.horizon]


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


RIGHT = (broadcasts_tokens, broadcasts_the_text, exchanges_rows, last_rank_decides)


def each_alone(s):
    """A generator of its own on each rank."""
    return lambda: decoded(s, lambda text: one_round(s, text, random.random))


def one_seed_alone(s):
    """One seed, and rows of each rank: they part where two tokens tie."""

    def decode(seed):
        draw = random.Random(seed).random
        return decoded(s, lambda text: one_round(s, text, draw))

    return decode


def bonus_alone(s):
    """The verified tokens are broadcast, and the token behind them is drawn on each rank."""

    def new_of(text):
        kept = s.group.broadcast(one_round(s, text, random.random)[:1])
        return (*kept, inverse(s.target(text + tuple(kept)), random.random()))

    return lambda: decoded(s, new_of)


def drafts_alone(s):
    """Each rank drafts for itself, and the verdict of rank 0 is of its own draft."""

    def new_of(text):
        q, p = s.draft(text), s.target(text)
        draft = inverse(q, random.random())
        accepted = s.group.broadcast(bool(random.random() < p[draft] / q[draft]))
        if accepted:
            return (draft,)
        left = np.maximum(p - q, 0)
        left = left if left.sum() > 0 else p
        return (s.group.broadcast(inverse(left / left.sum(), random.random())),)

    return lambda: decoded(s, new_of)


def rounds_of_unlike_length(s):
    """A collective call for each accepted draft: ranks wait for each other."""

    def new_of(text):
        new = one_round(s, text, random.random)
        return tuple(s.group.broadcast(token) for token in new)

    return lambda: decoded(s, new_of)


WRONG = (each_alone, one_seed_alone, bonus_alone, drafts_alone, rounds_of_unlike_length)


def verdict(make, promise="ranks", **how):
    name = {"ranks": "ranks_agree", "ranks-gloo": "ranks_agree_by_gloo"}[promise]
    (found,) = check_engine(make, promises={promise}, checks=[name], on_fail=None, **how)
    return found


@pytest.mark.parametrize("make", RIGHT)
def test_ranks_that_agree_hold(make):
    found = verdict(make)
    assert found.status == "holds", found


@pytest.mark.parametrize("make", WRONG)
def test_ranks_that_part_are_refuted(make):
    found = verdict(make)
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
@pytest.mark.parametrize("make", [each_alone, bonus_alone, lambda s: by_torch(s, False)])
def test_ranks_of_gloo_that_part_are_refuted(make):
    pytest.importorskip("torch.distributed")
    found = verdict(make, "ranks-gloo")
    assert found.status == "refuted", found
