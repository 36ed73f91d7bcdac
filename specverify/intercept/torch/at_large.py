"""What is known of operations at a real vocabulary, before what is known of them everywhere.

Where this has no answer (``Declined``) the elements are taken one by one, as in a small vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specverify.intercept.refusals import Declined, RuleDeclined, is_declined
from specverify.intercept.torch import many_operations, wide_operations
from specverify.intercept.unknowns.wide import at_large_now

Handler = Callable[..., Any]
_TABLES = (many_operations.HANDLERS, wide_operations.HANDLERS)
NAMES = frozenset(name for table in _TABLES for name in table)
"""The operations that are known here, by their names in ``torch.ops.aten``."""


def at_large_first(name: str, function: Any, handler: Handler | None) -> Handler:
    """Return ``handler``, after what is known here of the operation ``name``; ``function`` is the operation."""
    known = [table[name] for table in _TABLES if name in table]

    def answer(*args: Any, **kwargs: Any) -> Any:
        for wide in known if at_large_now() else ():
            try:
                found = wide(function, *args, **kwargs)
            except RuleDeclined:
                continue
            if not is_declined(found):
                return found
        return handler(*args, **kwargs) if handler else Declined(f"there is no rule for {name} of random numbers")

    return answer
