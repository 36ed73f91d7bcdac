"""Anybody's engine as a subject: a call that decodes with speculation, and the same call without.

    speculative() -> new tokens        plain() -> new tokens

Both take no arguments, decode the same prompt and return the new token ids, as a list or a one-dimensional tensor. They
draw from torch, NumPy or ``random``, and are enumerated as they are. Everything they use must be as it was whenever
they are called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from typing import Any

from reference import Claim, Draws, Tokens
from specverify.enumeration import complete_law
from specverify.intercept.deferred import known
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.outcome import final_outcome
from specverify.subjects.subject import EngineProgram, Subject, UnusableSubject

Decode = Callable[[], Any]


def engine_subject(
    speculative: Decode, plain: Decode | Mapping[Tokens, float], name: str, models: tuple[Any, ...] = ()
) -> Subject:
    """Return the subject of one call; it claims to be lossless.

    ``plain`` may also be the law of the new tokens itself. The forward passes of ``models``, if they are transformers
    models, are remembered by content from run to run.
    """
    promised = partial(_given_law, plain) if isinstance(plain, Mapping) else partial(_plain_law, plain, models)
    return Subject(
        name=name,
        summary=(speculative.__doc__ or "an engine").strip().partition("\n")[0],
        claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
        programs=(
            EngineProgram(
                name="as called",
                open=partial(opened, speculative, models),
                law=promised,
                vocabulary=1 + max((token for new in promised() for token in new), default=0),
            ),
        ),
        rational=False,
    )


@contextmanager
def opened(
    decode: Decode, models: tuple[Any, ...], forced_uniform: float | None = None
) -> Iterator[Callable[[Draws], Any]]:
    """Yield a call as a program of draws."""

    def program(draws: Draws) -> Any:
        with answered_everywhere(draws, forced_uniform):
            return _outcome(decode())

    with ExitStack() as stack:
        if models:
            import torch  # noqa: PLC0415 - whoever passes models has it

            from specverify.intercept.memo import Memory, remembered  # noqa: PLC0415

            stack.enter_context(torch.no_grad())
            for model in models:
                stack.enter_context(remembered(model, Memory({}, [0])))
        yield program


def _outcome(tokens: Any) -> Any:
    """Return the tokens of a run; those of a tensor that nobody looked at with their law."""
    if hasattr(tokens, "detach"):
        from specverify.intercept.lazy_tensor import elements_of  # noqa: PLC0415 - it is a tensor

        if tokens.dim() != 1:
            raise UnusableSubject(
                f"it returned a tensor of shape {tuple(tokens.shape)}, expected [number of new tokens]"
            )
        return final_outcome(list(elements_of(tokens)))
    found = tuple(int(known(token)) for token in tokens)
    if not found:
        raise UnusableSubject("it returned no token, expected at least one")
    return found


@lru_cache(maxsize=4)
def _plain_law(plain: Decode, models: tuple[Any, ...]) -> Mapping[Tokens, float]:
    with opened(plain, models) as program:
        return complete_law(program)


def _given_law(law: Mapping[Tokens, float]) -> Mapping[Tokens, float]:
    total = sum(law.values())
    if any(mass < 0 for mass in law.values()) or abs(total - 1) > 1e-6:
        raise UnusableSubject(f"the law that was given sums to {total:.6g}, expected probabilities that sum to 1")
    return law
