"""Ways to count with torch how many drafts of a row are kept: one uniform for each, and the first rejection."""

from __future__ import annotations

import torch

from test_support.idioms.idiom import count


@count("torch", wrong=("dim=0).sum()", "dim=0).max() * 2"))
def product_of_masks(p, q):
    """The sum of the cumulative product of the mask."""
    kept = torch.rand(len(p)) < p / q
    return kept.long().cumprod(dim=0).sum()


@count("torch", wrong=("(~kept)", "kept"))
def sum_of_rejections(p, q):
    """The number of positions without an earlier rejection."""
    kept = torch.rand_like(p) < p / q
    return ((~kept).cumsum(-1) < 1).sum()


@count("torch", wrong=("u >= p / q", "u >= p"))
def first_place_of_a_rejection(p, q):
    """``nonzero`` of the rejections, and its first entry."""
    u = torch.rand(len(p), dtype=torch.float64)
    lost = (u >= p / q).nonzero()
    return len(p) if lost.numel() == 0 else lost[0, 0].item()


@count("torch", wrong=("as_tuple=True)[0]", "as_tuple=True)[0].flip(0)"))
def nonzero_as_a_tuple(p, q):
    """``nonzero`` as a tuple of indices."""
    lost = (torch.rand_like(p) >= p / q).nonzero(as_tuple=True)[0]
    return int(lost[0]) if len(lost) else len(p)


@count("torch", wrong=("lost.any()", "lost[0]"))
def argmax_of_rejections(p, q):
    """``argmax`` of the rejections, if there is one."""
    lost = torch.rand_like(p) >= p / q
    return int(lost.int().argmax()) if lost.any() else len(p)


@count("torch", wrong=("[kept, ", "[~kept, "))
def argmin_with_a_stop(p, q):
    """A False after the mask, and the index of the smallest."""
    kept = torch.rand(len(p)) < p / q
    return torch.cat([kept, torch.tensor([False])]).int().argmin()


@count("torch", wrong=("value=True).float().argmax()", "value=True).float().argmin()"))
def padded_mask(p, q):
    """A True after the rejections, and ``argmax`` of floats."""
    lost = torch.rand(len(p)) >= p / q
    return torch.nn.functional.pad(lost, (0, 1), value=True).float().argmax()


@count("torch", wrong=("len(p)).min()", "len(p)).max()"))
def smallest_rejected_place(p, q):
    """The smallest index of a rejection, or the length."""
    kept = torch.rand_like(p) < p / q
    return torch.where(kept, len(p), torch.arange(len(p))).clamp(max=len(p)).min()


@count("torch", wrong=("mask, u, 1.0", "mask, u * u, 1.0"))
def padding_never_accepted(p, q):
    """Uniforms after the drafts are 1, with which no draft is accepted."""
    ratio = torch.cat([p / q, torch.ones(2, dtype=p.dtype)])
    mask = torch.arange(len(ratio)) < len(p)
    u = torch.rand(len(ratio), dtype=p.dtype)
    u = torch.where(mask, u, 1.0)
    return (u < ratio).int().cumprod(0).sum()


@count("torch", wrong=("u < ratio", "u < ratio * ratio"))
def padding_masked(p, q):
    """``masked_fill`` of the uniforms."""
    ratio = torch.nn.functional.pad(p / q, (0, 1), value=1.0)
    drafted = torch.arange(len(ratio)) < len(p)
    u = torch.rand(len(ratio), dtype=p.dtype).masked_fill(~drafted, 1.0)
    return (u < ratio).long().cumprod(0).sum()


@count("torch", wrong=("buffer[: len(p)] = ", "buffer[: len(p)] = 0.5 * "))
def slice_of_a_buffer(p, q):
    """Uniforms written into the front of a buffer."""
    buffer = torch.ones(8)
    buffer[: len(p)] = torch.rand(len(p))
    return (buffer[: len(p)] < p / q).long().cumprod(0).sum()


@count("torch", wrong=("copy_(torch.rand(len(p)))", "copy_(torch.rand(1))"))
def copied_into_a_buffer(p, q):
    """``copy_`` into a buffer that is reused."""
    buffer = torch.zeros(len(p))
    buffer.copy_(torch.rand(len(p)))
    return (buffer < p / q).long().cumprod(0).sum()


@count("torch", wrong=("buffer[i] = torch.rand(())", "buffer[i] = torch.rand(()) ** 2"))
def written_one_by_one(p, q):
    """A buffer filled element by element."""
    buffer = torch.empty(len(p))
    for i in range(len(p)):
        buffer[i] = torch.rand(())
    return (buffer < p / q).long().cumprod(0).sum()


@count("torch", wrong=("for _ in p]", "for _ in p[:1]]"))
def stacked(p, q):
    """Uniforms drawn one by one and stacked."""
    u = torch.stack([torch.rand(()) for _ in p])
    return (u < p / q).long().cumprod(0).sum()


@count("torch", wrong=("[torch.rand(1) for _ in p]", "[torch.rand(1)] * len(p)"))
def joined(p, q):
    """Uniforms joined."""
    u = torch.cat([torch.rand(1) for _ in p])
    return (u < p / q).long().cumprod(0).sum()


@count("torch", wrong=("(u - p / q).max() < 0", "(u - p).max() < 0"))
def largest_difference(p, q):
    """All are kept if the largest difference is below 0; else they are tested one by one."""
    u = torch.rand(len(p), dtype=torch.float64)
    if (u - p / q).max() < 0:
        return len(p)
    return int((u[0] < p[0] / q[0]).item())


@count("torch", wrong=("if u.max() < (p / q).min()", "if u.min() < (p / q).min()"))
def largest_uniform(p, q):
    """A shortcut for rows that are accepted as a whole: the largest uniform is below the smallest ratio."""
    u = torch.rand_like(p)
    if u.max() < (p / q).min():
        return len(p)
    return (u < p / q).long().cumprod(0).sum()


@count("torch", wrong=("(u / (p / q)).cummax(0).values < 1", "(u / p).cummax(0).values < 1"))
def running_maximum(p, q):
    """The running maximum of uniform / ratio stays below 1."""
    u = torch.rand(len(p), dtype=torch.float64)
    return ((u / (p / q)).cummax(0).values < 1).sum()


@count("torch", wrong=("flip(0)\n", "flip(0) * 0.5\n"))
def flipped_twice(p, q):
    """Uniforms drawn from the back."""
    u = torch.rand(len(p)).flip(0)
    return (u < p / q).long().cumprod(0).sum()


@count("torch", wrong=("u[None].expand(3, -1)", "(u[None] ** 2).expand(3, -1)"))
def expanded_for_rows(p, q):
    """Uniforms expanded for several rows, only one of which is used."""
    u = torch.rand(len(p))
    kept = u[None].expand(3, -1) < (p / q)[None].expand(3, -1)
    return kept[1].long().cumprod(-1).sum()


@count("torch", wrong=("torch.logical_and(kept[:1], kept[1:])", "torch.logical_or(kept[:1], kept[1:])"))
def both_by_hand(p, q):
    """Of two drafts: the first, and the first and the second."""
    kept = torch.rand(len(p)) < p / q
    return torch.cat([kept[:1], torch.logical_and(kept[:1], kept[1:])]).sum()


@count("torch", wrong=("ratio >= 1", "ratio >= 0.25"))
def certain_ones_first(p, q):
    """Drafts whose ratio is at least 1 are kept whatever the uniform is."""
    ratio = p / q
    kept = (ratio >= 1) | (torch.rand_like(ratio) < ratio)
    return kept.long().cumprod(0).sum()


@count("torch", wrong=("(p / q).clamp(max=1)", "(q / p).clamp(max=1)"))
def bernoulli_row(p, q):
    """``bernoulli`` of a row."""
    return torch.bernoulli((p / q).clamp(max=1)).cumprod(0).sum()


@count("torch", wrong=("ratio.log()", "p.log()"))
def running_sum_of_logarithms(p, q):
    """A mask in logarithms, rejections as minus infinity, and their running sum."""
    ratio = p / q
    score = torch.where(torch.rand_like(p).log() < ratio.log(), 0.0, -torch.inf)
    return (score.cumsum(0) > -torch.inf).sum()


@count("torch", wrong=("if not kept[i]", "if kept[i]"))
def list_of_the_mask(p, q):
    """The mask as a list, searched for the first False."""
    kept = (torch.rand(len(p)) < p / q).tolist()
    for i in range(len(p)):
        if not kept[i]:
            return i
    return len(p)


@count("torch", wrong=("zip(u.tolist(), (p / q).tolist(), strict=True)", "zip(u.tolist(), p.tolist(), strict=True)"))
def lists_of_numbers(p, q):
    """Uniforms and ratios as lists of numbers."""
    u, number = torch.rand(len(p)), 0
    for mine, ratio in zip(u.tolist(), (p / q).tolist(), strict=True):
        if mine >= ratio:
            break
        number += 1
    return number


@count("torch", wrong=("u.numpy() < ratio", "u.numpy() < p.numpy()"))
def seen_by_numpy(p, q):
    """Uniforms as an array of NumPy."""
    u, ratio = torch.rand(len(p), dtype=torch.float64), (p / q).numpy()
    kept = u.numpy() < ratio
    return kept.cumprod().sum()


@count("torch", wrong=("torch.lt(u, p / q, out=kept)", "torch.le(p / q, u, out=kept)"))
def mask_that_is_kept(p, q):
    """``torch.lt`` into an existing mask of the row."""
    kept = torch.empty(len(p), dtype=torch.bool)
    u = torch.rand(len(p), dtype=torch.float64)
    torch.lt(u, p / q, out=kept)
    return kept.to(torch.int32).cumprod(0).sum()


@count("torch", wrong=("torch.minimum(torch.ones(()), p / q)", "torch.minimum(torch.ones(()), p)"))
def ratio_of_minimum(p, q):
    """``torch.minimum`` of 1 and the ratio, and a comparison with exchanged sides."""
    alpha = torch.minimum(torch.ones(()), p / q)
    return torch.gt(alpha, torch.rand_like(alpha)).int().cumprod(-1).sum()


@count("torch", wrong=("(kept == 0)", "(kept != 0)"))
def unequal_to_zero(p, q):
    """A mask of integers, compared with 0."""
    kept = (torch.rand_like(p) < p / q).to(torch.uint8)
    lost = torch.nonzero((kept == 0).view(-1)).view(-1).tolist()
    return lost[0] if lost else len(p)


@count("torch", wrong=("u[:, 0]", "u[:, 0] * 0.5"))
def column_of_a_matrix(p, q):
    """A column of a matrix of uniforms that has more columns than are used."""
    u = torch.rand(len(p), 3)
    return (u[:, 0] < p / q).long().cumprod(0).sum()


@count("torch", wrong=("-waiting < ", "-2 * waiting < "))
def exponentials_of_a_row(p, q):
    """A row of exponentials in place of logarithms of uniforms."""
    waiting = torch.empty_like(p).exponential_()
    return (-waiting < p.log() - q.log()).long().cumprod(0).sum()


@count(
    "torch",
    wrong=(
        "scatter_(0, torch.arange(len(p)), torch.rand(len(p)))",
        "scatter_(0, torch.arange(len(p)), torch.rand(len(p)) / 2)",
    ),
)
def scattered(p, q):
    """Uniforms scattered into a row of ones."""
    u = torch.ones(len(p) + 2).scatter_(0, torch.arange(len(p)), torch.rand(len(p)))
    ratio = torch.cat([p / q, torch.ones(2, dtype=p.dtype)])
    return (u < ratio).long().cumprod(0).sum()
