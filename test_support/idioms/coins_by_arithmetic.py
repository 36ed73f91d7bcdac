"""Ways to decide with torch, by arithmetic, whether one draft is kept: roots, signs, integer parts, integers."""

from __future__ import annotations

import torch

from test_support.idioms.idiom import coin


@coin("torch", wrong=("torch.sqrt(torch.rand(()))", "torch.rand(())"))
def square_root(p, q):
    """The root of the uniform is compared with the root of the ratio."""
    return bool(torch.sqrt(torch.rand(())) < torch.sqrt(p / q))


@coin("torch", wrong=("** 2 < (p / q) ** 2", "** 3 < (p / q) ** 2"))
def powers(p, q):
    """The square of the uniform is compared with the square of the ratio."""
    return bool(torch.rand(()) ** 2 < (p / q) ** 2)


@coin("torch", wrong=("torch.rand(1, out=u)", "torch.rand(1, out=u).sqrt_()"))
def answer_into_a_mask(p, q):
    """``torch.lt`` into an existing mask."""
    u, mask = torch.empty(1), torch.empty(1, dtype=torch.bool)
    torch.rand(1, out=u)
    torch.lt(u, (p / q).float(), out=mask)
    return bool(mask)


@coin("torch", wrong=("u.sub_(p / q)", "u.sub_(p)"))
def difference_in_place(p, q):
    """The ratio is subtracted from the uniform, and the sign is tested."""
    u = torch.rand((), dtype=p.dtype)
    return bool(u.sub_(p / q).lt_(0))


@coin("torch", wrong=("torch.sign(ratio - u) > 0", "torch.sign(ratio - u / 2) > 0"))
def sign_of_the_difference(p, q):
    """The sign of the difference of ratio and uniform."""
    ratio, u = p / q, torch.rand(())
    return bool(torch.sign(ratio - u) > 0)


@coin("torch", wrong=("torch.ceil(ratio - u)", "torch.ceil(ratio - u / 2)"))
def ceiling_of_the_difference(p, q):
    """The ceiling of ratio minus uniform is 1 or 0."""
    ratio, u = (p / q).clamp(max=1), torch.rand(())
    return torch.ceil(ratio - u).int().item() == 1


@coin("torch", wrong=("torch.floor(u + ratio)", "torch.floor(u + 0.5 * ratio)"))
def floor_of_the_sum(p, q):
    """The integer part of uniform plus ratio is a coin; with a ratio of 1 it is always 1."""
    ratio, u = (p / q).clamp(max=1), torch.rand((), dtype=torch.float64)
    return bool(torch.floor(u + ratio))


@coin("torch", wrong=("torch.relu(ratio - u)", "torch.relu(ratio - u * u)"))
def what_is_left_of_the_ratio(p, q):
    """The positive part of ratio minus uniform, as a bool."""
    ratio, u = p / q, torch.rand(())
    return bool(torch.relu(ratio - u).bool())


@coin("torch", wrong=("torch.signbit(u - p / q)", "torch.signbit(u - p)"))
def sign_bit(p, q):
    """The sign bit of uniform minus ratio."""
    u = torch.rand((), dtype=torch.float64)
    return bool(torch.signbit(u - p / q))


@coin("torch", wrong=("torch.heaviside(p / q - u, torch.zeros_like(u))", "torch.heaviside(p - u, torch.zeros_like(u))"))
def step_function(p, q):
    """``heaviside`` of ratio minus uniform."""
    u = torch.rand((), dtype=torch.float64)
    return torch.heaviside(p / q - u, torch.zeros_like(u)).item() > 0


@coin("torch", wrong=("a / keep < b / (1 - keep)", "a * keep < b * (1 - keep)"))
def two_clocks(p, q):
    """Two exponential clocks: keeping rings before rejecting with the probability of its rate."""
    keep = (p / q).clamp(max=1)
    a, b = torch.empty(2, dtype=p.dtype).exponential_()
    return bool(a / keep < b / (1 - keep))


@coin("torch", wrong=("torch.randint(0, 2**24, (1,))", "torch.randint(0, 2**23, (1,))"))
def whole_numbers_of_24_bits(p, q):
    """An integer of 24 bits, divided by 2^24."""
    return bool(torch.randint(0, 2**24, (1,)).double() / 2**24 < p / q)


@coin("torch", wrong=("random_(2**53)", "random_(2**52)"))
def whole_numbers_in_place(p, q):
    """``random_`` of 53 bits, scaled as a generator does it."""
    bits = torch.empty((), dtype=torch.int64).random_(2**53)
    return bool(bits * 2.0**-53 < p / q)


@coin("torch", wrong=("torch.logit(u)", "torch.log(u)"))
def log_odds(p, q):
    """The log-odds of a uniform against those of the ratio."""
    u, ratio = torch.rand((), dtype=torch.float64), (p / q).clamp(max=1)
    return bool(torch.logit(u) < torch.logit(ratio))


@coin("torch", wrong=("(block < p / q)", "(block / 2 < p / q)"))
def one_of_a_block(p, q):
    """One of a block of uniforms."""
    block = torch.rand(4)[2:3].squeeze().contiguous()
    return bool(block < p / q)


@coin("torch", wrong=("bool((torch.rand(()) < p / q).all())", "not bool((torch.rand(()) < p / q).all())"))
def all_of_one(p, q):
    """``all`` of one comparison."""
    return bool((torch.rand(()) < p / q).all())


@coin("torch", wrong=("torch.full((), u)", "torch.full((), u) / 2"))
def full_of_a_number(p, q):
    """A tensor filled with a number that was drawn."""
    u = torch.rand(()).item()
    return bool(torch.full((), u) < p / q)


@coin("torch", wrong=("torch.tensor([u])", "torch.tensor([u / 3])"))
def tensor_of_a_number(p, q):
    """A tensor made from a number that was drawn."""
    u = torch.rand(()).item()
    return bool(torch.tensor([u]) < p / q)
