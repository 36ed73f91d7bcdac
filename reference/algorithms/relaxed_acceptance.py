"""Relaxed acceptance: while the model thinks, a draft may be any of the target's top tokens (TensorRT-LLM).

The rule is that of NVIDIA/TensorRT-LLM, ``cpp/tensorrt_llm/kernels/speculativeDecoding/mtpKernels.cu``,
``mtpRelaxedAcceptanceKernel``, and ``_torch/speculative/mtp.py``. A draft is accepted if it is the argmax of p, or if
it is one of the ``top`` most probable tokens and p(draft) >= max p - delta. The token after the accepted drafts is the
argmax. Outside the thinking phase delta is 0, so a draft tied with the argmax is accepted. ``torch.topk`` fills up with
tokens of probability 0: a delta above max p accepts these too.

The text is in the thinking phase if the last of the marks ``begin`` and ``end`` in it is ``begin``. This is decided
once for a round, by the text before it. In a prompt the release looks only for ``begin``. Nothing is drawn, so the law
is a point mass.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ..drafters.model import greedy_drafter
from ..laws import law_of_rounds
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..pmf import argmax
from ..rounds import from_parts
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Task,
    Tokens,
    Verified,
    Verifier,
)


def thinking(text: Tokens, begin: int, end: int) -> bool:
    """Return whether ``text`` is inside a thinking part: the last of its marks ``begin`` and ``end`` is ``begin``."""
    marks = [token for token in text if token in {begin, end}]
    return bool(marks) and marks[-1] == begin


def is_near(p: Pmf, token: int, top: int, delta: Any) -> bool:
    """Return whether ``token`` is among the ``top`` tokens of p and within ``delta`` of its largest probability.

    Raises ``ValueError`` for fewer than one token or a negative delta.
    """
    if top < 1 or not delta >= 0:
        raise ValueError(f"top is {top} and delta {delta}, expected at least 1 token and a distance >= 0")
    values = p.tolist()
    ranked = sorted(range(len(values)), key=lambda other: (-values[other], other))[:top]
    return token == ranked[0] or (token in ranked and bool(values[token] >= values[ranked[0]] - parameter(delta, p)))


def relaxed(top: int, delta: Any, begin: int, end: int) -> Verifier:
    """Return the verifier that accepts a draft if it is one of the ``top`` tokens of p and near the largest one.

    After the mark ``begin``, near means that the probabilities differ by at most ``delta``. After the mark ``end``, or
    without a mark, near means equal. The token after the accepted drafts is the argmax of p.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        within = delta if thinking(prefix, begin, end) else 0
        for stay, token in enumerate(draft.tokens):
            p = target(prefix + draft.tokens[:stay])
            if not is_near(p, token, top, within):
                return Verified((*draft.tokens[:stay], argmax(p)), stay)
        return Verified((*draft.tokens, argmax(target(prefix + draft.tokens))), len(draft.tokens))

    return verify


@from_parts
def build(task: Task, top: int = 10, delta: Any = 0.6, begin: int = 0, end: int = 1, gamma: int = 3) -> Parts:
    """Return the decoder that drafts ``gamma`` argmaxes of q and accepts those near the argmax of p.

    A draft is accepted if it is one of the ``top`` tokens of p and its probability is within ``delta`` of the largest.
    After the token ``end``, or before the first ``begin``, delta is 0.
    """
    return Parts(greedy_drafter(draft_model(task)), constant(gamma), relaxed(top, delta, begin, end))


def declared_law(
    task: Task, prompt: Tokens, top: int = 10, delta: Any = 0.6, begin: int = 0, end: int = 1, gamma: int = 3
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises: a point mass, because decoding is deterministic.

    The options are those of ``build``.
    """
    draft = draft_model(task)

    def committed(prefix: Tokens, remaining: int) -> Iterator[tuple[Tokens, Any]]:
        within = delta if thinking(prefix, begin, end) else 0
        new: Tokens = ()
        for _ in range(min(gamma, remaining - 1)):
            guess = argmax(draft(prefix + new))
            if not is_near(task.target(prefix + new), guess, top, within):
                break
            new = (*new, guess)
        yield (*new, argmax(task.target(prefix + new))), 1

    return law_of_rounds(task, prompt, committed)


ALGORITHM = Algorithm(
    name="relaxed-acceptance",
    summary="while thinking accept d = argmax q if it is a top token of p within delta, else if d = argmax p "
    "(declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY}),
    examples=(
        {"top": 3, "delta": Fraction(2, 5), "begin": 2, "end": 1, "gamma": 2},
        {"top": 2, "delta": Fraction(1, 2), "begin": 0, "end": 1, "gamma": 3},
    ),
    paper="code: NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/kernels/speculativeDecoding/mtpKernels.cu",
    declared_law=declared_law,
    systems=("TensorRT-LLM's relaxed acceptance",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(Reduction("greedy-speculation", "one token", {"top": 1, "gamma": 2}, {"gamma": 2}, rounds=False),),
)
