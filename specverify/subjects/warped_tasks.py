"""Models under sampling parameters that keep their unprocessed model, for a subject that processes logits itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from specverify.reference import LanguageModel, Pmf, Tokens


class Processed(NamedTuple):
    """A model under sampling parameters or a penalty: a call returns the processed pmf ``[vocabulary]``."""

    bare: Callable[[Tokens], Any]
    """What is processed, after the same tokens: logits or a pmf ``[vocabulary]``. The subject is given this."""
    pmfs: LanguageModel
    """What becomes of it. The subject's law is to follow this."""

    def __call__(self, tokens: Tokens, /) -> Pmf:
        """Return the processed pmf after ``tokens``."""
        return self.pmfs(tokens)


def bare(model: LanguageModel | None) -> Callable[[Tokens], Any]:
    """Return the unprocessed model of a ``Processed`` one. Raises ``TypeError`` for any other model."""
    if not isinstance(model, Processed):
        raise TypeError("the model is not processed, expected one that keeps what it was made of")
    return model.bare
