"""Ways to decide with torch whether one draft is kept: by a uniform number, or by an equivalent number."""

from __future__ import annotations

import torch

from test_support.idioms.idiom import coin


@coin("torch", wrong=("< p / q", "< p"))
def item_of_a_uniform(p, q):
    """A uniform as a Python number."""
    return torch.rand(1).item() < p / q


@coin("torch", wrong=("min(1.0, p.item() / q.item())", "min(1.0, q.item() / p.item())"))
def all_python_numbers(p, q):
    """All numbers as Python numbers."""
    u, ratio = torch.rand(()).item(), min(1.0, p.item() / q.item())
    return u < ratio


@coin("torch", wrong=("torch.rand(1, out=buffer)", "torch.rand(1, out=buffer).mul_(0.5)"))
def uniform_into_a_buffer(p, q):
    """``torch.rand`` into an existing buffer."""
    buffer = torch.empty(1)
    torch.rand(1, out=buffer)
    return bool(buffer[0] < p / q)


@coin("torch", wrong=("[1]", "[1]) ** 2 + 0 * torch.ones([1]"))
def operation_by_its_name(p, q):
    """``torch.ops.aten.rand``, as lowered code has it."""
    return bool(torch.ops.aten.rand([1]) < p / q)


@coin("torch", wrong=("uniform_(0.0, 1.0)", "uniform_(0.0, 2.0)"))
def uniform_in_place(p, q):
    """A new tensor, filled in place."""
    return bool(torch.empty((), dtype=p.dtype).uniform_(0.0, 1.0) < p / q)


@coin("torch", wrong=("uniform_(0, q.item())", "uniform_(0, p.item())"))
def uniform_up_to_q(p, q):
    """A uniform below q is compared with p."""
    return bool(torch.zeros(1).uniform_(0, q.item()) < p)


@coin("torch", wrong=("uniform_(-1, 1) < 2 * p / q - 1", "uniform_(-1, 1) < p / q"))
def uniform_around_zero(p, q):
    """A uniform from -1 to 1."""
    return bool(torch.empty(()).uniform_(-1, 1) < 2 * p / q - 1)


@coin("torch", wrong=("torch.rand_like(p)", "torch.rand_like(p) ** 2"))
def uniform_like_the_row(p, q):
    """``rand_like`` takes the dtype of the probability."""
    return torch.rand_like(p) < p / q


@coin("torch", wrong=("torch.float64", "torch.float64) * torch.tensor(0.5"))
def double_against_float(p, q):
    """A float64 uniform is compared with a float32 ratio."""
    u = torch.rand((), dtype=torch.float64)
    return bool(u < (p / q).float())


@coin("torch", wrong=("torch.nn.init.uniform_(torch.empty(1))", "torch.nn.init.uniform_(torch.empty(1), 0, 2)"))
def uniform_of_initialisation(p, q):
    """The uniform of ``torch.nn.init``."""
    return bool(torch.nn.init.uniform_(torch.empty(1)) < p / q)


@coin("torch", wrong=("0.0, 1.0", "0.0, 2.0"))
def uniform_distribution(p, q):
    """``distributions.Uniform``."""
    return bool(torch.distributions.Uniform(0.0, 1.0).sample() < p / q)


@coin("torch", wrong=("(p / q).clamp(max=1)", "(q / p).clamp(max=1)"))
def bernoulli_of_a_probability(p, q):
    """``torch.bernoulli``."""
    return bool(torch.bernoulli((p / q).clamp(max=1)))


@coin("torch", wrong=("torch.minimum(p / q, torch.ones(()))", "torch.minimum(p, torch.ones(()))"))
def bernoulli_in_place(p, q):
    """``bernoulli_`` of a tensor of bools."""
    return torch.zeros((), dtype=torch.bool).bernoulli_(torch.minimum(p / q, torch.ones(()))).item()


@coin("torch", wrong=("probs=(p / q).clamp(0, 1)", "probs=p"))
def bernoulli_distribution(p, q):
    """``distributions.Bernoulli``."""
    return torch.distributions.Bernoulli(probs=(p / q).clamp(0, 1)).sample().item() == 1


@coin("torch", wrong=("keep, 1 - keep", "1 - keep, keep"))
def multinomial_of_two(p, q):
    """``multinomial`` of keeping and rejecting."""
    keep = (p / q).clamp(max=1.0)
    return int(torch.multinomial(torch.stack([keep, 1 - keep]), 1)) == 0


@coin("torch", wrong=("torch.log(p) - torch.log(q)", "torch.log(q) - torch.log(p)"))
def logarithms(p, q):
    """The comparison in logarithms."""
    return bool(torch.log(torch.rand(())) < torch.log(p) - torch.log(q)) and bool(p > 0)


@coin("torch", wrong=("u.log_()", "u.log_().mul_(2)"))
def logarithm_in_place(p, q):
    """The logarithm of the uniform in place; 1 - u is never 0."""
    u = 1 - torch.rand(1)
    u.log_()
    return bool(u < p.log() - q.log()) and bool(p > 0)


@coin("torch", wrong=("-torch.empty(()).exponential_()", "-2 * torch.empty(()).exponential_()"))
def exponential_for_a_logarithm(p, q):
    """Minus an exponential is the logarithm of a uniform."""
    return bool(-torch.empty(()).exponential_() < torch.log(p) - torch.log(q))


@coin("torch", wrong=("exponential_(2.0)", "exponential_(0.5)"))
def exponential_of_another_rate(p, q):
    """An exponential of rate 2, multiplied by it."""
    waited = 2 * torch.empty(1).exponential_(2.0)
    return bool(torch.exp(-waited) < p / q)


@coin("torch", wrong=("rate=1.0", "rate=0.5"))
def exponential_distribution(p, q):
    """``distributions.Exponential`` and the exponential function."""
    return bool(torch.exp(-torch.distributions.Exponential(rate=1.0).sample()) < p / q)


@coin("torch", wrong=("torch.log1p(-u)", "torch.log(1 + u)"))
def log1p(p, q):
    """The logarithm of 1 - u."""
    u = torch.rand(())
    return bool(torch.log1p(-u) < torch.log(p / q))


@coin("torch", wrong=("min=torch.finfo(u.dtype).tiny", "max=0.1"))
def clamped_at_tiny(p, q):
    """A uniform clamped above 0 before its logarithm is taken."""
    u = torch.rand(1)
    return bool(u.clamp(min=torch.finfo(u.dtype).tiny).log() < (p / q).log())


@coin("torch", wrong=("u == 0, 1e-12, u", "u > 0.8, 1e-12, u"))
def zero_is_replaced(p, q):
    """A uniform of exactly 0 is replaced."""
    u = torch.rand(())
    u = torch.where(u == 0, 1e-12, u)
    return bool(torch.log(u) < torch.log(p / q))


@coin("torch", wrong=("return bool(u < p / q)", "return bool(u * u < p / q)"))
def looked_at_for_nan(p, q):
    """The uniform is first tested for NaN and for its range."""
    u = torch.rand(())
    if torch.isnan(u) or not torch.isfinite(u) or u < 0 or u >= 1:
        raise ValueError("not a uniform")
    return bool(u < p / q)


@coin("torch", wrong=("torch.nan_to_num(u, nan=1.0)", "torch.nan_to_num(u, nan=1.0) / 2"))
def nan_to_num(p, q):
    """``nan_to_num`` of the uniform."""
    u = torch.rand(())
    return bool(torch.nan_to_num(u, nan=1.0) < p / q)


@coin("torch", wrong=("u * q", "u / q"))
def product_with_q(p, q):
    """No division: u q below p."""
    u = torch.rand(1, dtype=torch.float64)
    return bool((u * q).lt(p))


@coin("torch", wrong=("(1 - torch.rand(()))", "(torch.rand(()) - 0.5)"))
def the_other_end(p, q):
    """1 - u is at most the ratio."""
    return bool((1 - torch.rand(())) <= p / q)
