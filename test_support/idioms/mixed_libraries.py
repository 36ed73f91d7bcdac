"""Two libraries in one step: numbers of one, and arrays of the other."""

from __future__ import annotations

import random

import numpy as np
import torch

from test_support.idioms.idiom import coin, count, token

RNG = np.random.default_rng(0)


@coin("random and torch", wrong=("random.random() < p / q", "random.random() < p"))
def number_against_a_tensor(p, q):
    """A number of ``random`` and a ratio of torch."""
    return bool(random.random() < p / q)


@coin("random and torch", wrong=("p / q > random.random()", "p > random.random()"))
def tensor_against_a_number(p, q):
    """The same with exchanged sides."""
    return bool(p / q > random.random())


@coin("random and torch", wrong=("random.random() * q", "random.random() / q"))
def number_times_a_tensor(p, q):
    """A product of both."""
    return bool(random.random() * q < p)


@coin("random and torch", wrong=("torch.tensor(random.random())", "torch.tensor(random.random()) ** 2"))
def tensor_of_a_number(p, q):
    """A tensor of a number of ``random``."""
    return bool(torch.tensor(random.random()) < p / q)


@coin("NumPy and torch", wrong=("RNG.random() < (p / q).item()", "RNG.random() < p.item()"))
def numpy_against_a_number(p, q):
    """A number of NumPy and one of torch."""
    return RNG.random() < (p / q).item()


@coin("NumPy and torch", wrong=("np.log(1 - RNG.random())", "np.log(1 - RNG.random() / 2)"))
def logarithm_of_numpy(p, q):
    """A logarithm of NumPy against one of torch."""
    return bool(p > 0) and bool(np.log(1 - RNG.random()) < torch.log(p / q).item())


@coin(
    "NumPy and torch",
    wrong=("torch.rand(()).item() < np.float64((p / q).item())", "torch.rand(()).item() < np.float64(p.item())"),
)
def torch_against_numpy(p, q):
    """A number of torch and one of NumPy."""
    return bool(torch.rand(()).item() < np.float64((p / q).item()))


@coin(
    "random and torch",
    wrong=("torch.tensor(random.random() < (p / q).item())", "torch.tensor(random.random() < p.item())"),
)
def answer_as_a_tensor(p, q):
    """The answer of a comparison as a tensor."""
    return bool(torch.tensor(random.random() < (p / q).item()))


@count("NumPy and torch", wrong=("torch.from_numpy(RNG.random(len(p)))", "torch.from_numpy(RNG.random(1))"))
def array_as_a_tensor(p, q):
    """``from_numpy`` of uniforms."""
    u = torch.from_numpy(RNG.random(len(p)))
    return (u < p / q).long().cumprod(0).sum()


@count("NumPy and torch", wrong=("torch.as_tensor(RNG.random(len(p)))", "torch.as_tensor(RNG.random(len(p))) / 2"))
def as_tensor(p, q):
    """``as_tensor`` of uniforms."""
    u = torch.as_tensor(RNG.random(len(p)))
    return (u < p / q).long().cumprod(0).sum()


@count("random and torch", wrong=("for _ in p])", "for _ in p]) ** 2"))
def tensor_of_numbers(p, q):
    """A tensor of numbers of ``random``."""
    u = torch.tensor([random.random() for _ in p])
    return (u < p / q).long().cumprod(0).sum()


@count("NumPy and torch", wrong=("RNG.random(len(p)) < (p / q).numpy()", "RNG.random(len(p)) < p.numpy()"))
def ratios_as_an_array(p, q):
    """Ratios as an array of NumPy."""
    return np.cumprod(RNG.random(len(p)) < (p / q).numpy()).sum()


@count("NumPy and torch", wrong=("torch.from_numpy(kept)", "torch.from_numpy(~kept)"))
def mask_as_a_tensor(p, q):
    """A mask of NumPy as a tensor."""
    kept = RNG.random(len(p)) * q.numpy() < p.numpy()
    return torch.from_numpy(kept).long().cumprod(0).sum()


@token("NumPy and torch", wrong=("p=(w / w.sum()).numpy()", "p=(w.sqrt() / w.sqrt().sum()).numpy()"))
def choice_for_a_tensor(w):
    """``choice`` of NumPy for weights of torch."""
    return RNG.choice(len(w), p=(w / w.sum()).numpy())


@token(
    "random and torch",
    wrong=("random.choices(range(len(w)), w.tolist())", "random.choices(range(len(w)), w.sqrt().tolist())"),
)
def choices_for_a_tensor(w):
    """``choices`` of ``random`` for weights of torch."""
    return random.choices(range(len(w)), w.tolist())[0]


@token("NumPy and torch", wrong=("RNG.gumbel(size=len(w))", "RNG.gumbel(size=len(w)) * 3"))
def gumbel_for_a_tensor(w):
    """Gumbel noise of NumPy for logits of torch."""
    return (w.log() + torch.from_numpy(RNG.gumbel(size=len(w)))).argmax()


@token("random and torch", wrong=("random.random() * cdf[-1]", "random.random() ** 2 * cdf[-1]"))
def lookup_for_a_tensor(w):
    """A number of ``random`` looked up in a tensor."""
    cdf = w.cumsum(0)
    return (cdf <= random.random() * cdf[-1]).sum().clamp(max=int(w.nonzero()[-1]))


@token("NumPy and torch", wrong=("/ w[keep])", "/ w[keep].sqrt())"))
def noise_for_a_tensor(w):
    """Noise of NumPy for the possible weights of torch."""
    keep = w.nonzero().view(-1)
    noise = torch.tensor(RNG.exponential(size=len(w)))
    return keep[(noise[keep] / w[keep]).argmin()]


@token("NumPy and torch", wrong=("multinomial(w, 1", "multinomial(w.sqrt(), 1"))
def seed_for_torch(w):
    """A seed that NumPy draws for a generator of torch."""
    generator = _generator(seed=RNG.integers(2**31))
    return torch.multinomial(w, 1, generator=generator).item()


def _generator(seed):
    return torch.Generator().manual_seed(int(seed))
