"""Models under sampling parameters, which also have the logits or pmfs before these parameters.

A subject that applies the sampling parameters itself gets these logits or pmfs; its expected law is that of the models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from specverify.reference import LanguageModel, Pmf, Tokens


class Processed(NamedTuple):
    """A model with sampling parameters or a penalty: a call returns the pmf ``[vocabulary]`` after they are applied."""

    bare: Callable[[Tokens], Any]
    """Logits or pmf ``[vocabulary]`` after the same tokens, before parameters are applied; the subject gets these."""
    pmfs: LanguageModel
    """The pmfs after the parameters are applied, which the subject's law must follow."""

    def __call__(self, tokens: Tokens, /) -> Pmf:
        """Return the pmf of the token after ``tokens``, with the sampling parameters or the penalty applied."""
        return self.pmfs(tokens)


def bare(model: LanguageModel | None) -> Callable[[Tokens], Any]:
    """Return the function from tokens to unprocessed logits or pmfs, the field ``bare`` of a ``Processed`` model.

    Unprocessed means: before sampling parameters or a penalty are applied. Raises ``TypeError`` for any other model.
    """
    if not isinstance(model, Processed):
        raise TypeError("the model is not processed, expected one that keeps what it was made of")
    return model.bare
