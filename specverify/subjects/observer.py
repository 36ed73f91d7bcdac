"""The forward passes of a user's engine while it runs, reported by the engine itself or by a hook on its target.

  observer = Observer(prompt=(2, 7))                       the engine calls observer.forward(held, fed)
  observer = Observer(prompt=(2, 7), target=model)         a model of a supported engine gets a hook
  observer = Observer(prompt=(2, 7), target=module, read=lambda args, kwargs: Forward(held, fed, entries))

A draft from a stale cache only costs acceptance, so the output of the engine does not show it. The inputs of the target
contain the drafts. If the argument ``draft``, the expected pmf of each draft, is given, wrong drafts are found there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from specverify.base.arguments import argument_error, check_callable
from specverify.base.prefixes import common_length
from specverify.intercept.symbolic.deferred import known
from specverify.laws.rounding import FLOAT64, spacing
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.subject import Forward, UnusableSubject

ReadPass = Callable[[tuple[Any, ...], Mapping[str, Any]], Forward | None]
"""``read(args, kwargs)`` of a call of the target returns the content of its cache and its input; None if the call is no
pass of the target, for example if it drafts. It must not keep references to its arguments."""

_UNSEEN = -1
"""Stands for a token of the cache that no recorded pass processed."""


class Observer:
    """Record of an engine's forward passes during one call, for ``check_engine(..., observe=observer)``."""

    def __init__(
        self,
        prompt: Tokens,
        *,
        draft: LanguageModel | None = None,
        target: Any = None,
        read: ReadPass | None = None,
        processors: bool = False,
    ) -> None:
        """Store what to record.

        Args:
            prompt: The text before the new tokens.
            draft: ``draft(tokens)`` is the pmf ``[vocabulary]`` from which the draft after all of ``tokens`` (prompt
                and drafts included) should be drawn; one-hot for greedy drafts.
            target: A torch module whose calls are recorded.
            read: Returns the cache length and the input of a call of the target. None: the method ``read_pass`` of the
                target, which a ``torch_network`` has.
            processors: Whether the engine will report the input of every row's logits processor to ``processed``.

        Raises:
            ValueError: For ``read`` without a target.
        """
        if read is not None and target is None:
            raise argument_error("target", target, "the module whose calls read looks at")
        if target is not None and not callable(getattr(target, "register_forward_pre_hook", None)):
            raise argument_error("target", target, "a torch module")
        if draft is not None:
            check_callable(draft, "draft", arguments=1)
        self.prompt: Tokens = _whole(prompt, "the prompt")
        self.draft, self.target, self.processors = draft, target, processors
        self.read: ReadPass | None = read or getattr(target, "read_pass", None)
        self.forwards: list[Forward] = []
        self.shown: list[list[Tokens]] = []
        self._processed: Tokens = ()
        """The tokens that the target has processed in this call, at their positions."""

    @property
    def tells(self) -> frozenset[str]:
        """Return the names of the fields of ``Observed`` (the record of a run) that the observer fills.

        They are ``forwards``, the forward passes, and ``rows`` if logits processors are observed.
        """
        return frozenset({"forwards", "rows"} if self.processors else {"forwards"})

    def forward(self, held: int, fed: Any, entries: tuple[Any, ...] = ()) -> None:
        """Record that the target is about to process tokens.

        Args:
            held: The number of entries in the target's cache.
            fed: The token ids to process; those after the last committed token are drafts.
            entries: The keys and values in the cache, one array ``[..., held, width]`` for each layer and kind. They
                are compared with those of plain decoding.

        Raises:
            UnusableSubject: If ``held`` is no whole number.
        """
        if not isinstance(held, (int, np.integer)) or isinstance(held, bool) or held < 0:
            raise UnusableSubject(f"the observer got {held!r} as the number of cache entries, expected a whole number")
        arrays = tuple(np.array(_plain(entry), dtype=np.float64) for entry in entries)
        coarsest = max((spacing(entry.dtype) for entry in entries), default=FLOAT64)
        tokens, held = _whole(fed, "what is fed"), int(held)
        again = common_length(self._processed[held:], tokens)
        is_behind_all = again > 0 and held + again == len(self._processed)
        unseen = (_UNSEEN,) * (held - len(self._processed))
        self._processed = self._processed[:held] + unseen + tokens
        self.forwards.append(Forward(held, tokens, arrays, coarsest, again, is_behind_all))
        self.shown.append([])

    def processed(self, tokens: Any) -> None:
        """Record the input ``tokens`` of a logits processor in the last pass.

        ``tokens`` are all tokens before the position whose logits the processor changes. Raises ``UnusableSubject``
        before the first pass.
        """
        if not self.shown:
            raise UnusableSubject("the observer got a processed row before any forward pass")
        self.shown[-1].append(_whole(tokens, "what a processor is shown"))

    def begin(self) -> None:
        """Clear the record of the previous call."""
        self.forwards.clear()
        self._processed = ()
        self.shown.clear()

    def hooked(self) -> AbstractContextManager[None]:
        """Return a context manager that records the calls of the target; without a target it does nothing."""
        return nullcontext() if self.target is None else self._hooked()

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        if self.read is None:
            raise UnusableSubject(
                "it is not known how to read a call of this target, expected read=(args, kwargs) -> Forward"
            )

        def look(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            result = self.read(args, kwargs) if self.read else None
            if result is not None:
                self.forward(result.held, result.fed, result.entries)

        hook = self.target.register_forward_pre_hook(look, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()


def _plain(entry: Any) -> Any:
    """Return ``entry`` as an array that NumPy accepts.

    A tensor is converted to float64, because NumPy lacks bfloat16.
    """
    return entry.detach().double().cpu().numpy() if hasattr(entry, "detach") else entry


def _whole(tokens: Any, what: str) -> Tokens:
    """Return the token ids ``tokens`` as integers; symbolic ones (without a value yet) get a value.

    Raises ``UnusableSubject``, naming ``what``, for other values.
    """
    given = tokens.tolist() if hasattr(tokens, "tolist") else tokens
    try:
        result = tuple(known(token) for token in given)
        whole = tuple(int(token) for token in result)
    except (TypeError, ValueError):
        raise UnusableSubject(f"{what} is {tokens!r}, expected a sequence of token ids") from None
    if whole != result:
        raise UnusableSubject(f"{what} is {tokens!r}, expected whole token ids")
    return whole


__all__ = ["Forward", "Observer", "ReadPass"]
