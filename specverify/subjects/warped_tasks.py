"""Models under sampling parameters that keep what they were made of, for a subject that processes on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from specverify.reference import LanguageModel, Pmf, Tokens


class Processed(NamedTuple):
    """A model under sampling parameters or a penalty: called, it returns the processed pmf ``[vocabulary]``."""

    bare: Callable[[Tokens], Any]
    """What is processed, after the same tokens: logits or a pmf ``[vocabulary]``. The subject is given this."""
    pmfs: LanguageModel
    """What becomes of it. The subject's law is to follow this."""

    def __call__(self, tokens: Tokens, /) -> Pmf:
        """Return the processed pmf after ``tokens``."""
        return self.pmfs(tokens)


def bare(model: LanguageModel | None) -> Callable[[Tokens], Any]:
    """Return what a processed model was made of. Raises ``TypeError`` for one that nothing processed."""
    if not isinstance(model, Processed):
        raise TypeError("the model is not processed, expected one that keeps what it was made of")
    return model.bare
