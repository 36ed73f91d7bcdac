"""A model that drafts for itself with some of its layers left out: Draft&Verify (2309.08168), LayerSkip (2404.16710).

Each method selects its layers: a searched subset, or the first E layers and the head (early exit). Tables have no
layers, so the model interpolates: with ``run`` of ``layers`` layers the pmf is ``(run p + (layers - run) q)/layers``.
If all layers run it is p, if none run it is q.
"""

from __future__ import annotations

from fractions import Fraction

from ..parameters import parameter
from ..types import LanguageModel, Pmf, Tokens
from ..validation import check_callable


def partial_model(target: LanguageModel, draft: LanguageModel, run: int, layers: int) -> LanguageModel:
    """Return the model with ``run`` of ``layers`` layers: the pmf ``(run p + (layers - run) q)/layers``.

    p is ``target`` and q is ``draft``. Raises ``ValueError`` unless both are callables and 0 <= run <= layers >= 1.
    """
    check_callable(target, "target")
    check_callable(draft, "draft")
    if layers < 1 or not 0 <= run <= layers:
        raise ValueError(f"run is {run} of {layers} layers, expected a number from 0 to the layers, at least 1")

    def partial(tokens: Tokens) -> Pmf:
        p = target(tokens)
        share = parameter(Fraction(run, layers), p)
        return share * p + (1 - share) * draft(tokens)

    return partial
