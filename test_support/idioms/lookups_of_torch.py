"""A token drawn from weights with torch, by its own samplers and by one uniform that is looked up."""

from __future__ import annotations

import torch

from test_support.idioms.idiom import token


@token("torch", wrong=("multinomial(w, 1)", "multinomial(w.sqrt(), 1)"))
def multinomial(w):
    """``multinomial``."""
    return torch.multinomial(w, 1).item()


@token("torch", wrong=("w.multinomial(3", "w.sqrt().multinomial(3"))
def first_of_several(w):
    """The first of several drawn with replacement."""
    return w.multinomial(3, replacement=True)[0]


@token("torch", wrong=("probs=w", "probs=w**2"))
def categorical(w):
    """``distributions.Categorical`` of probabilities."""
    return torch.distributions.Categorical(probs=w).sample()


@token("torch", wrong=("logits=w.log()", "logits=w"))
def categorical_of_logits(w):
    """``distributions.Categorical`` of logits."""
    return torch.distributions.Categorical(logits=w.log()).sample()


@token("torch", wrong=("probs=w / w.sum()", "probs=w.sqrt() / w.sum()"))
def one_hot_categorical(w):
    """``distributions.OneHotCategorical``."""
    return torch.distributions.OneHotCategorical(probs=w / w.sum()).sample().argmax()


@token("torch", wrong=("probs=w", "probs=w.sqrt()"))
def multinomial_distribution(w):
    """``distributions.Multinomial`` of one."""
    return torch.distributions.Multinomial(1, probs=w).sample().argmax(-1)


@token("torch", wrong=("WeightedRandomSampler(w.tolist(), 1)", "WeightedRandomSampler(w.sqrt().tolist(), 1)"))
def weighted_sampler(w):
    """The sampler of ``torch.utils.data``."""
    return next(iter(torch.utils.data.WeightedRandomSampler(w.tolist(), 1)))


@token("torch", wrong=("cdf <= u", "cdf <= u * u"))
def counted_below(w):
    """The number of cumulative weights that are at most the uniform."""
    cdf = w.cumsum(0) / w.sum()
    cdf[-1] = 1.0
    u = torch.rand((), dtype=w.dtype)
    last = int(w.nonzero()[-1])
    return (cdf <= u).sum().clamp(max=last)


@token("torch", wrong=("cdf > u).nonzero()", "cdf > u * u).nonzero()"))
def first_above(w):
    """The first cumulative weight above the uniform, ``nonzero``."""
    cdf = w.cumsum(-1)
    u = torch.rand(1, dtype=w.dtype) * cdf[-1]
    return (cdf > u).nonzero()[0].item()


@token("torch", wrong=("torch.where(cdf > u)[0][0]", "torch.where(cdf > u)[0][-1]"))
def first_of_where(w):
    """``where`` of one argument."""
    cdf = w.cumsum(-1)
    u = torch.rand((), dtype=w.dtype) * cdf[-1]
    return torch.where(cdf > u)[0][0]


@token("torch", wrong=("(cdf > u).int().argmax()", "(cdf < u).int().argmax()"))
def argmax_of_a_mask(w):
    """``argmax`` of the mask of weights above."""
    cdf = w.cumsum(-1)
    u = torch.rand((), dtype=w.dtype) * cdf[-1]
    return (cdf > u).int().argmax()


@token("torch", wrong=("(cdf - u > 0)", "(cdf - u / 2 > 0)"))
def argmax_of_differences(w):
    """Positive differences, as floats."""
    cdf = w.cumsum(-1)
    u = torch.rand((), dtype=w.dtype) * cdf[-1]
    return (cdf - u > 0).float().argmax()


@token("torch", wrong=("cdf[-1:] * torch.rand(1, dtype=w.dtype)", "cdf[-1:] * torch.rand(1, dtype=w.dtype) / 2"))
def searchsorted(w):
    """``searchsorted`` in the cumulative weights, on the right side, so that 0 never selects a weight of 0."""
    cdf = w.cumsum(0)
    return torch.searchsorted(cdf, cdf[-1:] * torch.rand(1, dtype=w.dtype), right=True)[0]


@token("torch", wrong=("u * cdf[-1]", "u * u * cdf[-1]"))
def bucketize(w):
    """``bucketize``."""
    cdf, u = w.cumsum(0), torch.rand((), dtype=w.dtype)
    return torch.bucketize(u * cdf[-1], cdf, right=True)


@token("torch", wrong=("return order[place]", "return place[0]"))
def searched_in_sorted_weights(w):
    """The weights are sorted first, as top-p sampling does."""
    weights, order = w.sort(descending=True)
    cdf = weights.cumsum(-1)
    place = torch.searchsorted(cdf, torch.rand(1, dtype=w.dtype) * cdf[-1], right=True)
    return order[place].item()


@token("torch", wrong=("left -= weight", "left -= weight / 2"))
def taken_away_one_by_one(w):
    """Weights are subtracted from the uniform until it is below 0."""
    left, possible = torch.rand((), dtype=w.dtype) * w.sum(), w.nonzero().view(-1).tolist()
    for i in possible:
        weight = w[i]
        left -= weight
        if left < 0:
            return i
    return possible[-1]


@token("torch", wrong=("if u < total", "if u < weight"))
def scanned(w):
    """Weights are added until the sum is above the uniform, in Python numbers."""
    u, total = torch.rand(1).item() * w.sum().item(), 0.0
    last = 0
    for i, weight in enumerate(w.tolist()):
        if weight > 0:
            total += weight
            last = i
            if u < total:
                return i
    return last


@token("torch", wrong=("rest = w[i:].sum()", "rest = 2 * w.sum()"))
def coin_by_coin(w):
    """A coin for each token decides whether it is this one among the remaining ones."""
    possible = w.nonzero().view(-1).tolist()
    for i in possible[:-1]:
        rest = w[i:].sum()
        if torch.rand((), dtype=w.dtype) * rest < w[i]:
            return i
    return possible[-1]


@token("torch", wrong=("low = middle + 1", "low = middle + 2"))
def bisected(w):
    """A bisection by hand."""
    cdf = w.cumsum(0)
    u, low, high = torch.rand((), dtype=w.dtype) * cdf[-1], 0, len(w) - 1
    while low < high:
        middle = (low + high) // 2
        if cdf[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@token("torch", wrong=("1 - torch.rand(1, dtype=w.dtype)", "(1 - torch.rand(1, dtype=w.dtype)) ** 2"))
def counted_from_the_other_end(w):
    """1 - u, and the number of cumulative weights below it."""
    cdf = w.cumsum(0)
    u = 1 - torch.rand(1, dtype=w.dtype)
    return (cdf < u * cdf[-1]).sum()


@token("torch", wrong=("x - place < share[place]", "x - place > share[place]"))
def alias_table(w):
    """Walker's alias table: one uniform selects the column and the part of the column."""
    share, other = _alias((w / w.sum()).tolist())
    x = torch.rand((), dtype=torch.float64) * len(w)
    place = int(x)
    return place if x - place < share[place] else other[place]


def _alias(pmf):
    share, other = [mass * len(pmf) for mass in pmf], list(range(len(pmf)))
    small = [i for i, mass in enumerate(share) if mass < 1]
    large = [i for i, mass in enumerate(share) if mass >= 1]
    while small and large:
        i, j = small.pop(), large[-1]
        other[i] = j
        share[j] -= 1 - share[i]
        if share[j] < 1:
            small.append(large.pop())
    for i in small + large:
        share[i] = 1.0 if share[i] > 0.5 else share[i]
    return share, other


@token(
    "torch", wrong=("column = torch.randint(len(w), ()).item()", "column = min(1, torch.randint(len(w), ()).item())")
)
def alias_table_of_two_numbers(w):
    """An alias table whose column is drawn separately."""
    share, other = _alias((w / w.sum()).tolist())
    column = torch.randint(len(w), ()).item()
    return column if torch.rand(()) < share[column] else other[column]


@token("torch", wrong=("hits[0, -1] > u", "hits[0, -1] > u * u"))
def cumulated_in_a_kernels_way(w):
    """Blocks of a row are summed, the block is found, then the index in it."""
    padded = torch.nn.functional.pad(w, (0, len(w) % 2)).view(2, -1)
    u, before = torch.rand((), dtype=w.dtype) * w.sum(), 0.0
    last = int(w.nonzero()[-1])
    for block in range(2):
        hits = (before + padded[block].cumsum(0))[None]
        if hits[0, -1] > u:
            return min(last, block * padded.shape[1] + int((hits[0] > u).int().argmax()))
        before = hits[0, -1]
    return last


@token("torch", wrong=("cdf[..., :-1] <= u", "cdf[..., :-1] <= u * u"))
def counted_without_the_last(w):
    """The last bound is left out, so that no index lies after it."""
    keep = w.nonzero().view(-1)
    cdf = (w[keep] / w.sum()).cumsum(-1)
    u = torch.rand(1, dtype=w.dtype)
    return keep[(cdf[..., :-1] <= u).sum(-1)]
