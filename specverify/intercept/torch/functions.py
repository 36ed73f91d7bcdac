"""The random functions of torch, by their own signatures, with the symbolic numbers or outcomes that each returns.

Every replacement also draws from the same generator with the same arguments, so that a wrong call fails as it does in
torch and the generator advances. A ``TorchDraws`` object makes all draws of one run. A replacement has this object as
its first parameter, ``run``, and then the parameters of the torch function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._ops import OpOverload, OpOverloadPacket

from specverify.intercept.caller import caller, draw_line
from specverify.intercept.cpython.patches import empty
from specverify.intercept.distributions import (
    DISTRIBUTIONS,
    FINITE,
    FOLLOWED_AT_ONCE,
    MOST_PERMUTED,
    MOST_TRIALS,
    MOST_WHOLE,
    SMALLEST,
    Boundary,
    Distribution,
    Forced,
    Parameters,
    binomial_pmf,
    bound,
    boundary_of,
    spelled,
)
from specverify.intercept.refusals import NeedsValue, RuleDeclined
from specverify.intercept.run import mode
from specverify.intercept.symbolic.algebra import check_not_equal
from specverify.intercept.symbolic.continuous import Continuous, exponential, whole_number
from specverify.intercept.symbolic.deferred import Categorical
from specverify.intercept.symbolic.large import (
    MANY,
    DrawAmongMany,
    Wide,
    at_large_now,
    check_numbers,
    check_outcomes,
    continuous_in_16_bits,
    large,
)
from specverify.intercept.symbolic.primitives import OF_SCALARS, OF_VECTORS
from specverify.intercept.symbolic.steps import times
from specverify.intercept.symbolic.uniform import Uniform
from specverify.intercept.symbolic.vectors import LOGS, Many, NoiseBlock, Steps, uniforms
from specverify.intercept.torch.filled import Filled
from specverify.intercept.torch.generators import TorchStreams
from specverify.intercept.torch.tensors import SymbolicTensor, look_at
from specverify.laws import rounding
from specverify.reference import Draws, Site

# Draws


FEW = 11
"""A uniform of at most this many bits has so few values that its discreteness changes the law."""
BITS = {torch.bfloat16: 8, torch.float16: 11, torch.float32: 24, torch.float64: 53}
"""Dtype -> bits of its significand; its largest uniform is 1 - 2**-bits."""


class Noise(NamedTuple):
    """A continuous distribution from which torch draws, such as the uniform or the exponential one."""

    image: Callable[[Uniform], Continuous]
    """Maps a uniform to the drawn number."""
    fill: Callable[..., Any]
    """``fill(tensor, generator=generator)``: the real torch function."""
    exponential: bool = True
    """Whether boundary values are those of an exponential; otherwise those of a uniform."""
    alone: bool = False
    """Whether, on the CPU, torch draws the elements of a tensor from the generator as it draws single numbers."""
    way: tuple[Hashable, ...] = ()
    """Key that distinguishes this law from other laws of the same call; () if there is only one."""


UNIFORM = Noise(Continuous, torch.Tensor.uniform_, exponential=False, alone=True)
EXPONENTIAL = Noise(exponential, torch.Tensor.exponential_)


class TorchDraws:
    """Makes all draws of torch in one run: it returns the random tensors and outcomes of intercepted calls."""

    def __init__(self, draws: Draws, forced: Forced) -> None:
        """Let ``draws`` choose outcomes; ``forced`` gives uniforms fixed values (None: they are symbolic)."""
        self.draws, self.boundary = draws, boundary_of(forced)
        self.filled, self.streams = Filled(), TorchStreams()

    def noise(self, noise: Noise, like: torch.Tensor, call: str, generator: Any) -> Any:
        """Return new random numbers with the law ``noise``, in the shape and dtype of ``like``.

        The result is a symbolic tensor, or an ordinary one if the run has fixed values. ``call`` is the name of the
        function, ``generator`` its generator (None: the default one).
        """
        check_numbers(call, like.shape)
        if self.boundary is not None:
            return _forced(self.boundary, like, call, exponentials=noise.exponential)
        site: Site = (call, draw_line(), *self.streams.name(generator))
        if large(like.numel(), MANY):
            return self._many(like, site, noise, generator)
        elements = empty(tuple(like.shape), dtype=object)
        values = _values(noise, call, like.dtype)
        alike = noise.alone and like.device.type == "cpu"
        way = ("uniform" if noise.alone else call, like.dtype, *noise.way)

        drawn = torch.empty(() if alike else like.shape, dtype=like.dtype, device=like.device)
        advance = partial(noise.fill, drawn, generator=generator)

        states = self.streams.states(generator, like.device, advance, elements.size if alike else 1)
        state = None if alike else next(states)
        for place, index in enumerate(product(*map(range, elements.shape))):
            source = (next(states), 0) if alike else state and (state, place)
            own = (*site, *index)
            elements[index] = values(Uniform(self.draws, own, self.streams.draw(own, source, way)))
        return SymbolicTensor(elements, like.dtype, like.device)

    def _many(self, like: torch.Tensor, site: Site, noise: Noise, generator: Any) -> SymbolicTensor:
        """Return the random numbers of one call as a symbolic tensor that holds a noise vector.

        ``like`` gives shape and dtype, ``site`` names the call, ``noise`` is the law, and ``generator`` the real
        generator (None: the default one).
        """
        check_not_equal(str(like.dtype).removeprefix("torch."))
        drawn = torch.empty(like.shape, dtype=like.dtype, device=like.device)
        state = self.streams.state(generator, like.device, partial(noise.fill, drawn, generator=generator))
        way = ("many", site[0], tuple(like.shape), like.dtype, *noise.way)
        draw = self.streams.draw(site, state and (state, 0), way)
        result = uniforms(NoiseBlock(self.draws, site, draw, like.numel()), tuple(like.shape))
        many = result.then(LOGS).then(Steps("times", -1.0)) if noise.exponential else result
        return SymbolicTensor(many, like.dtype, like.device)

    def whole_numbers(
        self, like: torch.Tensor, call: str, low: int, number: int, generator: Any, advance: Callable[[], Any]
    ) -> Any:
        """Return a tensor of symbolic integers in ``[low, low + number)``, for too many values to enumerate.

        ``like`` gives shape and dtype. ``call`` is the name of the function, ``generator`` its generator (None: the
        default one); ``advance`` draws from it.
        """
        check_numbers(call, like.shape)
        if self.boundary is not None:
            boundary = self.boundary
            result = boundary.several(like.numel(), lambda: boundary.whole(call, low, number))
            return torch.tensor(result, dtype=like.dtype, device=like.device).reshape(like.shape)
        site: Site = (call, draw_line(), *self.streams.name(generator))
        state = self.streams.state(generator, like.device, advance)
        elements = empty(tuple(like.shape), dtype=object)
        for place, index in enumerate(np.ndindex(elements.shape)):
            draw = self.streams.draw((*site, *index), state and (state, place), (call, number))
            elements[index] = whole_number(Uniform(self.draws, (*site, *index), draw), low, number)
        return SymbolicTensor(elements, like.dtype, like.device)

    def outcomes(
        self, call: str, generator: Any, device: torch.device, advance: Callable[[], Any], number: int = 0
    ) -> Any:
        """Return the function ``outcome(pmf, index, first, way, noise)``; it returns the next outcome, unread.

        ``index`` is the position of the outcome in the result of the call. Index j of ``pmf`` stands for ``first + j``
        (default 0). ``way`` distinguishes laws with the same pmf. If torch races noise, ``noise`` identifies it: other
        calls from the same generator state with equal ``noise`` race the same numbers. ``call`` is the name of the
        torch function; ``advance`` draws from the real ``generator``, None for the default one of ``device``. Raises
        ``NeedsValue`` if ``number``, the number of outcomes, is too large; 0: the caller has checked it.
        """
        site: Site = (call, draw_line(), *self.streams.name(generator))
        state, count = self.streams.state(generator, device, advance), iter(range(2**62))
        if number:
            with self.streams.noting(site, state and (state, 0)):
                check_outcomes(call, number)

        def outcome(
            pmf: Any, index: Site, first: int = 0, way: tuple[Hashable, ...] = (), noise: Hashable | None = None
        ) -> Any:
            place, among_many = next(count), at_large_now() and large(int(np.count_nonzero(pmf)))
            source, used = None if among_many else noise, (call, first, pmf.tobytes(), *way)
            draw = self.streams.draw(site, state and (state, place), used, source, races=source is not None)
            if among_many:
                coupled = mode().coupled
                item = None if coupled is None else coupled.take_outcome(draw)

                def recorded(coupled: Any, masses: Any) -> int:
                    return int(coupled.outcome(masses, item, draw.name))

                drawn = draw.shared(
                    lambda: DrawAmongMany(self.draws, (*site, *index), draw, lambda: pmf, recorded=recorded)
                )
                return Wide(drawn, np.arange(first, first + len(pmf)))
            return Categorical(self.draws, pmf, (*site, *index), first, draw)

        return outcome


def _values(noise: Noise, call: str, dtype: torch.dtype) -> Callable[[Uniform], Continuous]:
    """Return the map from a uniform number to the symbolic number that torch computes for a value of ``noise``.

    In a 16-bit ``dtype`` uniform noise is an integer times the resolution. Exponential noise is refused there, unless
    it is treated as continuous (``continuous_in_16_bits``). ``call`` is the name of the function.
    """
    bits = BITS.get(dtype, 53)
    if bits > FEW or (noise.exponential and continuous_in_16_bits()):
        return noise.image
    if noise.exponential:
        raise NeedsValue(
            "few-bits", f"{call} at {caller()} draws noise of {dtype}, which is often equal: draw it in float32"
        )
    rounding.saw(dtype)
    return lambda uniform: whole_number(uniform, 0, 2**bits).then(times(2.0**-bits))


def _forced(boundary: Boundary, like: torch.Tensor, call: str, *, exponentials: bool) -> torch.Tensor:
    """Return an ordinary tensor of uniforms, or of ``exponentials``, with the fixed values of ``boundary``.

    ``like`` gives shape and dtype, and ``call`` is the name of the function that draws.
    """
    if exponentials:
        least = max(SMALLEST, torch.finfo(like.dtype).smallest_normal * torch.finfo(like.dtype).eps)
        often = 2.0 ** -BITS[like.dtype]  # on a GPU; on a CPU some are rarer
        numbers = boundary.several(like.numel(), lambda: boundary.exponential(call, least, least=often))
    else:
        largest = 1 - 2.0 ** -BITS[like.dtype]
        numbers = boundary.several(like.numel(), lambda: boundary.uniform(call, largest))
    return torch.tensor(numbers, dtype=like.dtype, device=like.device).reshape(like.shape)


# Functions


LONG_ROW = 64
"""NumPy adds up rows that are longer than this faster than Python does."""


def _have_a_sum(rows: np.ndarray[Any, Any]) -> bool:
    """Return whether each of ``rows`` consists of weights of at least 0 with a positive, finite sum."""
    if rows.shape[-1] <= LONG_ROW:
        return all(min(row) >= 0 and 0 < sum(row) < math.inf for row in rows.tolist())
    sums = rows.sum(-1)
    return bool((rows >= 0).all() and (sums > 0).all() and (sums < math.inf).all())


def _multinomial(
    run: TorchDraws, input: Any, num_samples: int = 1, replacement: bool = False, *, generator: Any = None
) -> Any:
    """Replace ``torch.multinomial``: return the indices of the outcomes of each row, drawn one after the other.

    Without replacement the row is renormalised after each draw. ``run`` makes the draws; the other parameters are those
    of torch's function.
    """
    weights = look_at(input)
    check_outcomes("torch.multinomial", weights.shape[-1])
    check_numbers("torch.multinomial", (*weights.shape[:-1], num_samples))
    doubles = weights if weights.dtype is torch.float64 and weights.is_cpu else weights.double().cpu()
    rows = doubles.numpy().reshape(-1, weights.shape[-1])
    if not _have_a_sum(rows):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0, or sums to 0")
    if not replacement and num_samples > 1 and (np.count_nonzero(rows, -1) < num_samples).any():
        raise NeedsValue("parameters", f"multinomial at {caller()} takes more outcomes than have positive weight")
    advance, noise = partial(torch.multinomial, weights, num_samples, replacement, generator=generator), None
    if num_samples == 1 and BITS.get(weights.dtype, 53) > FEW:
        noise = "exponential", weights.dtype, tuple(weights.shape)
    if num_samples == 1 or not replacement:  # torch races all weights then, and looks at each of them before
        advance = partial(torch.empty_like(weights).exponential_, generator=generator)
    outcome = run.outcomes("torch.multinomial", generator, weights.device, advance)
    result = empty((len(rows), num_samples), dtype=object)
    for row, masses in enumerate(rows):
        left = masses
        for draw in range(num_samples):
            result[row, draw] = outcome(left / left.sum(), (row, draw), way=(num_samples, replacement), noise=noise)
            if not replacement and num_samples > 1:
                left = np.where(np.arange(len(left)) == result[row, draw].value(), 0.0, left)
    return SymbolicTensor(result.reshape((*weights.shape[:-1], num_samples)), torch.int64, weights.device)


def _bernoulli(run: TorchDraws, input: Any, p: float | None = None, *, generator: Any = None) -> Any:
    if p is None:
        heads = look_at(input)
        advance = partial(torch.bernoulli, heads, generator=generator)
    else:
        heads = torch.full(input.shape, p, dtype=torch.float64, device=input.device)
        advance = partial(torch.bernoulli, torch.empty_like(heads, dtype=input.dtype), p, generator=generator)
    return _coins(run, "torch.bernoulli", heads, input.dtype, generator, advance)


def _bernoulli_(run: TorchDraws, tensor: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    given = look_at(p)
    heads = given if isinstance(given, torch.Tensor) else torch.tensor(given, dtype=torch.float64)
    like = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    advance = partial(like.bernoulli_, given, generator=generator)
    coins = _coins(run, "bernoulli_", heads.to(like.device).expand(like.shape), like.dtype, generator, advance)
    return run.filled.fill(tensor, coins)


def _coins(run: TorchDraws, call: str, heads: Any, dtype: Any, generator: Any, advance: Callable[[], Any]) -> Any:
    check_numbers(call, heads.shape)
    outcome = run.outcomes(call, generator, heads.device, advance)
    elements = np.empty(tuple(heads.shape), dtype=object)
    for index in np.ndindex(elements.shape):
        mass = float(heads[index])
        elements[index] = outcome(np.array([1 - mass, mass]), index)
    return SymbolicTensor(elements, dtype, heads.device)


def _binomial(run: TorchDraws, count: Any, prob: Any, generator: Any = None) -> Any:
    count, prob = look_at(count), look_at(prob)
    check_numbers("torch.binomial", count.shape)
    outcome = run.outcomes("torch.binomial", generator, count.device, lambda: torch.binomial(count, prob, generator))
    trials, chances = count.double(), prob.double().expand(count.shape)
    if not ((trials >= 0) & (trials <= MOST_TRIALS) & (trials == trials.round())).all():
        raise NeedsValue(
            "too-many-outcomes",
            f"binomial at {caller()} has other than 0 to {MOST_TRIALS} trials, which are not enumerated",
        )
    if not ((chances >= 0) & (chances <= 1)).all():
        raise NeedsValue("parameters", f"binomial at {caller()} has a probability outside [0, 1]")
    elements = np.empty(tuple(count.shape), dtype=object)
    for index in np.ndindex(elements.shape):
        elements[index] = outcome(binomial_pmf(int(trials[index]), float(chances[index])), index)
    return SymbolicTensor(elements, count.dtype, count.device)


def _shaped(*numbers: Any, size: Any = None, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    """Return an empty tensor of the shape and dtype that the arguments of a constructor such as ``torch.rand`` give."""
    shape = size if size is not None else numbers[0] if numbers and not isinstance(numbers[0], int) else numbers
    check_numbers("a call of torch", tuple(shape))
    return torch.empty(tuple(shape), dtype=dtype, device=device)


def _rand(run: TorchDraws, *numbers: Any, generator: Any = None, **named: Any) -> Any:
    return run.noise(UNIFORM, _shaped(*numbers, **named), "torch.rand", generator)


def _rand_like(
    run: TorchDraws, input: Any, *, dtype: Any = None, device: Any = None, generator: Any = None, **_: Any
) -> Any:
    check_numbers("torch.rand_like", input.shape)
    like = torch.empty(tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device)
    return run.noise(UNIFORM, like, "torch.rand_like", generator)


def _uniform_(run: TorchDraws, tensor: Any, *bounds: float, generator: Any = None, **named: float) -> Any:
    given = {"from": 0.0, "to": 1.0} | dict(zip(("from", "to"), bounds, strict=False)) | named
    low, width = given["from"], given["to"] - given["from"]
    if not 0 < width < math.inf:
        raise NeedsValue("parameters", f"uniform_ from {low} to {given['to']} at {caller()} has no width that is known")
    result = run.noise(UNIFORM, tensor, "uniform_", generator)
    return run.filled.fill(tensor, result if (low, width) == (0, 1) else result * width + low)


def _initial_uniform_(run: TorchDraws, tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    with torch.no_grad():
        return _uniform_(run, tensor, a, b, generator=generator)


def _kaiming_uniform_(
    run: TorchDraws,
    tensor: Any,
    a: float = 0,
    mode: Any = "fan_in",
    nonlinearity: Any = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Replace ``kaiming_uniform_``: fill ``tensor`` with uniform numbers between the bounds that torch computes.

    ``run`` makes the draw; the other parameters are those of torch's function.
    """
    if 0 in tensor.shape:
        return tensor
    fan = torch.nn.init._calculate_correct_fan(tensor, mode)  # noqa: SLF001 - nothing public tells it
    end = torch.nn.init.calculate_gain(nonlinearity, a) * math.sqrt(3.0 / fan)
    return _initial_uniform_(run, tensor, -end, end, generator)


def _exponential_(run: TorchDraws, tensor: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    if not 0 < lambd < math.inf:
        raise NeedsValue("parameters", f"exponential_({lambd}) at {caller()}: only a positive rate is answered")
    result = run.noise(EXPONENTIAL, tensor, "exponential_", generator)
    return run.filled.fill(tensor, result if lambd == 1 else result * (1 / lambd))


def _law(
    run: TorchDraws,
    law: Distribution,
    like: torch.Tensor,
    call: str,
    fill: Callable[..., Any],
    generator: Any,
    given: Sequence[Any] = (),
) -> Any:
    """Return random numbers of ``law`` with parameters ``given``, in the shape and dtype of ``like``.

    ``run`` makes the draws. ``fill(tensor, generator=generator)`` is torch's own method. ``call`` is the name of the
    drawing function. The tensor is symbolic, unless the run has fixed values.
    """
    floats = like.dtype.is_floating_point
    if floats and like.dtype.itemsize < 4:
        raise NeedsValue("few-bits", f"{call} at {caller()} draws numbers of {like.dtype}: draw them in float32")
    if like.numel() > _MOST_OF_LAW and not large(like.numel(), MANY):
        raise NeedsValue(
            "too-many-numbers", f"{call} at {caller()} draws {like.numel()} numbers, more than {_MOST_OF_LAW}"
        )

    def advance(_: torch.Tensor, generator: Any) -> None:
        fill(torch.empty(like.shape, dtype=like.dtype, device=like.device), generator=generator)

    base = EXPONENTIAL if law.exponential else UNIFORM
    noise = base._replace(fill=advance, alone=False, way=(tuple(like.shape), like.dtype, *given))
    drawn = run.noise(noise, torch.empty(like.shape, dtype=torch.float64, device=like.device), call, generator)
    if not isinstance(drawn, SymbolicTensor):
        end = 2.0 ** -BITS.get(like.dtype, 53)
        numbers = [law.image(OF_SCALARS, u if law.exponential else min(max(u, end), 1 - end), *given)
                   for u in drawn.flatten().tolist()]  # fmt: skip
        result = torch.tensor(
            [min(each, MOST_WHOLE) for each in numbers] if law.whole else numbers, dtype=torch.float64
        )
        return result.reshape(like.shape).to(like.dtype).to(like.device)
    if isinstance(drawn.content, Many):
        with suppress(RuleDeclined):
            return SymbolicTensor(law.image(OF_VECTORS, drawn.content, *given), like.dtype, like.device)
    elements = np.empty(tuple(like.shape), dtype=object)
    for index, element in np.ndenumerate(drawn.elements):
        elements[index] = law.image(OF_SCALARS, element, *given)
    return SymbolicTensor(elements, like.dtype, like.device)


_MOST_OF_LAW = 4096
"""Limit of numbers of one call that are created one by one."""


def _drawn_from(method: Any, law: Distribution, parameters: Parameters) -> Callable[..., Any]:
    """Return the replacement of ``method``, a tensor method that fills a tensor with numbers of ``law``.

    ``parameters`` are the names and defaults of the parameters of the method.
    """

    def answer(run: TorchDraws, tensor: Any, *args: Any, generator: Any = None, **named: Any) -> Any:
        given, _ = bound(parameters, args, named)
        method(torch.empty(0, dtype=tensor.dtype), *given)  # which refuses wrong parameters, and draws nothing

        def fill(drawn: torch.Tensor, generator: Any) -> None:
            method(drawn, *given, generator=generator)

        like = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        return run.filled.fill(tensor, _law(run, law, like, name_of(method), fill, generator, given))

    return answer


def _standard_normal(run: TorchDraws, like: torch.Tensor, call: str, generator: Any) -> Any:
    return _law(run, DISTRIBUTIONS["normal"], like, call, torch.Tensor.normal_, generator)


def _randn(run: TorchDraws, *numbers: Any, generator: Any = None, **named: Any) -> Any:
    return _standard_normal(run, _shaped(*numbers, **named), "torch.randn", generator)


def _randn_like(
    run: TorchDraws, input: Any, *, dtype: Any = None, device: Any = None, generator: Any = None, **_: Any
) -> Any:
    like = torch.empty(tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device)
    return _standard_normal(run, like, "torch.randn_like", generator)


def _normal(
    run: TorchDraws, mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, **named: Any
) -> Any:
    tensors = [each for each in (mean, std) if isinstance(each, torch.Tensor)]
    if size is not None or not tensors:
        like = _shaped(() if size is None else size, **named)
    else:
        shape = np.broadcast_shapes(*(tuple(each.shape) for each in tensors))
        like = torch.empty(shape, dtype=tensors[0].dtype, device=tensors[0].device)
    if bool((torch.as_tensor(look_at(std)) < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    return _standard_normal(run, like, "torch.normal", generator) * std + mean


def _initial_normal_(run: TorchDraws, tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    with torch.no_grad():
        return ANSWERS[torch.Tensor.normal_](run, tensor, mean, std, generator=generator)


def _poisson(run: TorchDraws, input: Any, generator: Any = None) -> Any:
    """Replace ``torch.poisson``: return a Poisson number for each mean in ``input``, drawn by ``run``.

    ``generator`` is the real generator. The law is truncated where float64 cannot represent the remaining probability.
    """
    rates = look_at(input)
    check_numbers("torch.poisson", rates.shape)
    outcome = run.outcomes("torch.poisson", generator, rates.device, lambda: torch.poisson(rates, generator))
    elements = np.empty(tuple(rates.shape), dtype=object)
    for index in np.ndindex(elements.shape):
        elements[index] = outcome(FINITE["poisson"].pmf(float(rates[index])), index)
    return SymbolicTensor(elements, rates.dtype, rates.device)


def _randint(run: TorchDraws, *numbers: Any, size: Any = None, **named: Any) -> Any:
    *ends, shape = (*numbers, size) if size is not None else numbers
    return _whole(run, "torch.randint", _ends(tuple(ends), named), shape, named)


def _randint_like(run: TorchDraws, input: Any, *ends: Any, **named: Any) -> Any:
    like = {"dtype": input.dtype, "device": input.device}
    return _whole(run, "torch.randint_like", _ends(ends, named), tuple(input.shape), like | named)


def _ends(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, int]:
    """Return the bounds ``(low, high)`` of a call such as ``randint``; ``low`` is 0 if it is omitted.

    ``given`` are the positional arguments of the call, and ``named`` its keyword arguments.
    """
    names = ("low", "high") if len(given) == 2 or "high" in named else ("high",)
    result = {"low": 0} | dict(zip(names, given, strict=False)) | named
    return int(result["low"]), int(result["high"])


def _whole(run: TorchDraws, call: str, ends: tuple[int, int], size: Any, named: dict[str, Any]) -> Any:
    check_numbers(call, tuple(size))
    more: Any = {"dtype": named.get("dtype") or torch.int64, "device": named.get("device") or "cpu"}
    like, generator = torch.empty(tuple(size), **more), named.get("generator")
    return _equally(run, call, ends, like, generator, lambda: torch.randint(*ends, size, generator=generator, **more))


def _equally(
    run: TorchDraws, call: str, ends: tuple[int, int], like: Any, generator: Any, advance: Callable[[], Any]
) -> Any:
    """Return a tensor in the shape of ``like`` with equally likely integers in ``[low, high)``, the pair ``ends``.

    The integers are outcomes, or symbolic integers if they have many possible values. ``run`` makes the draws, ``call``
    is the name of the function; ``advance`` draws from the real ``generator``.
    """
    number = ends[1] - ends[0]
    check_numbers(call, like.shape)
    if number > FOLLOWED_AT_ONCE:
        return run.whole_numbers(like, call, ends[0], number, generator, advance)
    outcome = run.outcomes(call, generator, like.device, advance)
    pmf, elements = np.full(number, 1 / number), np.empty(tuple(like.shape), dtype=object)
    for index in np.ndindex(elements.shape):
        elements[index] = outcome(pmf, index, first=ends[0])
    return SymbolicTensor(elements, like.dtype, like.device)


def _random_(run: TorchDraws, tensor: Any, *bounds: int, generator: Any = None, **named: int) -> Any:
    names = ("from", "to") if len(bounds) == 2 or "to" in named else ("to",)
    given = {"from": 0} | dict(zip(names, bounds, strict=False)) | named
    to = given.get("to")
    ends = given["from"], _DIGITS.get(tensor.dtype, torch.iinfo(torch.int64).max) if to is None else to

    def advance() -> None:
        like = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        like.random_(*(() if to is None else ends), generator=generator)

    return run.filled.fill(tensor, _equally(run, "random_", ends, tensor, generator, advance))


def _gumbel_softmax(
    run: TorchDraws, logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """Replace ``gumbel_softmax``; ``run`` makes the draw, and the other parameters are those of torch's function.

    With ``hard`` the result has 1 at the largest noisy logit and 0 elsewhere. Otherwise it consists of symbolic numbers
    of which only the order is known.
    """
    noise = _exponential_(run, torch.empty_like(logits, memory_format=torch.legacy_contiguous_format))
    scores = (logits - noise.log()) / tau
    if not isinstance(scores, SymbolicTensor):  # a value is forced
        soft = scores.softmax(dim)
        return torch.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0) if hard else soft
    if not hard:
        return scores.softmax(dim)
    places = torch.arange(logits.shape[dim]).reshape([-1 if d == dim % logits.ndim else 1 for d in range(logits.ndim)])
    return (scores.argmax(dim, keepdim=True) == places).to(logits.dtype)


def _randperm(
    run: TorchDraws, n: int, *, dtype: Any = None, device: Any = None, generator: Any = None, **_: Any
) -> Any:
    if n > MOST_PERMUTED:
        check_outcomes("torch.randperm", n)
    place = torch.device(device or "cpu")
    outcome = run.outcomes(
        "torch.randperm", generator, place, lambda: torch.randperm(n, device=place, generator=generator), n
    )
    left = list(range(n))
    chosen: list[int] = []
    while left:
        pmf = np.full(len(left), 1 / len(left))
        chosen.append(left.pop(outcome(pmf, (len(chosen),), way=(n,)).value()))
    return torch.tensor(chosen, dtype=dtype or torch.int64, device=device)


def name_of(func: Any) -> str:
    """Return the name of ``func``, a function or an operation of ``torch.ops``, without its module."""
    return getattr(func, "__name__", str(func))


def full_name_of(func: Any) -> str:
    """Return the name of ``func`` with its module, as users write it, such as ``torch.nn.functional.dropout``."""
    name = name_of(func)
    places = {"torch": torch, "torch.nn.functional": torch.nn.functional, "torch.Tensor": torch.Tensor}
    return next((f"{where}.{name}" for where, place in places.items() if getattr(place, name, None) is func), name)


@cache
def function_of(func: Any) -> Any:
    """Return the intercepted Python function of ``func``, an operation of ``torch.ops``; else ``func`` unchanged."""
    packet = func.overloadpacket if isinstance(func, OpOverload) else func
    if not isinstance(packet, OpOverloadPacket):
        return func
    name = str(packet).rpartition(".")[2]
    return next((result for place in (torch, torch.Tensor) if (result := getattr(place, name, None)) in ANSWERS), func)


_DIGITS = {torch.float64: 2**53 + 1, torch.float32: 2**24 + 1, torch.float16: 2**11 + 1, torch.bfloat16: 2**8 + 1,
           torch.int32: 2**31, torch.int16: 2**15, torch.int8: 2**7, torch.uint8: 2**8, torch.bool: 2}  # fmt: skip
"""Dtype -> exclusive upper end of ``random_`` without arguments."""
ANSWERS: dict[Any, Callable[..., Any]] = {
    torch.multinomial: _multinomial,
    torch.Tensor.multinomial: _multinomial,
    torch.bernoulli: _bernoulli,
    torch.Tensor.bernoulli: _bernoulli,
    torch.Tensor.bernoulli_: _bernoulli_,
    torch.binomial: _binomial,
    torch.rand: _rand,
    torch.rand_like: _rand_like,
    torch.Tensor.uniform_: _uniform_,
    torch.Tensor.exponential_: _exponential_,
    torch.nn.functional.gumbel_softmax: _gumbel_softmax,
    torch.nn.init.uniform_: _initial_uniform_,
    torch.nn.init.kaiming_uniform_: _kaiming_uniform_,
    torch.randint: _randint,
    torch.randint_like: _randint_like,
    torch.Tensor.random_: _random_,
    torch.randperm: _randperm,
    torch.randn: _randn,
    torch.randn_like: _randn_like,
    torch.normal: _normal,
    torch.poisson: _poisson,
    torch.nn.init.normal_: _initial_normal_,
    **{
        method: _drawn_from(method, *row)
        for name, row in spelled("torch").items()
        for method in [getattr(torch.Tensor, name)]
    },
}
"""torch function -> replacement, called with the draws of the run and the function's own arguments."""
MAKES = {torch.rand, torch.randn, torch.randint, torch.randperm}
"""Random functions that make a tensor, whose dtype is an argument."""
