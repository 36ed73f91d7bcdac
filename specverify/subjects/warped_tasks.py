"""Models under sampling parameters, which also have the logits or pmfs before these parameters.

A subject that applies the sampling parameters itself gets these logits or pmfs; its expected law is that of the models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from specverify.reference import LanguageModel, Pmf, Tokens


class Processed(NamedTuple):
    """A model under sampling parameters or a penalty: a call returns the processed pmf ``[vocabulary]``."""

    bare: Callable[[Tokens], Any]
    """The unprocessed logits or pmf ``[vocabulary]`` after the same tokens, which the subject gets."""
    pmfs: LanguageModel
    """The processed pmf, which the subject's law must follow."""

    def __call__(self, tokens: Tokens, /) -> Pmf:
        """Return the processed pmf after ``tokens``."""
        return self.pmfs(tokens)


def bare(model: LanguageModel | None) -> Callable[[Tokens], Any]:
    """Return the function from tokens to unprocessed logits or pmfs, the field ``bare`` of a ``Processed`` model.

    Unprocessed means: before sampling parameters or a penalty are applied. Raises ``TypeError`` for any other model.
    """
    if not isinstance(model, Processed):
        raise TypeError("the model is not processed, expected one that keeps what it was made of")
    return model.bare
