"""What a key-value cache must hold between rounds, and what is fed next.

Count known tokens, not cache entries. A round starts with ``known`` tokens committed; the target's cache holds
``known - 1`` of them (the last one has not been fed) and the drafter's at most as many. The verifying pass feeds
``x_known, d_1 .. d_gamma``: the target then holds ``known + gamma`` entries. The drafter has been fed all but its own
last token and holds ``known + gamma - 1``. After accepting n drafts and emitting one more token, ``known + n + 1``
tokens are known, and every entry of a rejected draft must go.

Always crop *to* a length. Cropping by a negative count is the classic mistake: ``[: -0]`` empties the cache. Where a
library can only remove a count, remove ``held - keep``, and call nothing when that is 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reference.types import Tokens


class KeepLengths(NamedTuple):
    """Number of cache entries to keep, in tokens from the start of the sequence."""

    target: int
    draft: int


def keep_lengths(known: int, gamma: int, accepted: int, draft_held: int | None = None) -> KeepLengths:
    """Return how many entries each cache keeps after ``accepted`` of ``gamma`` drafts were accepted.

    When every draft was accepted the drafter has never been fed its last token: it keeps one entry fewer, and two
    tokens must be fed to it next. ``draft_held`` is what its cache holds before the crop, for rounds in which it was
    not fed as usual: after such a round, one with gamma 0 leaves it two tokens behind. Raises ``ValueError`` for
    counts that no round can produce.
    """
    if known < 1:
        raise ValueError(f"{known} tokens are known, expected at least 1: a round starts from a non-empty sequence")
    if gamma < 0:
        raise ValueError(f"gamma is {gamma}, expected at least 0")
    if not 0 <= accepted <= gamma:
        raise ValueError(f"{accepted} drafts accepted, expected a number between 0 and gamma = {gamma}")
    held = known + gamma - 1 if draft_held is None else draft_held
    if held < 0:
        raise ValueError(f"the drafter's cache holds {held} entries, expected at least 0")
    return KeepLengths(target=known + accepted, draft=min(known + accepted, held))


def tokens_to_feed(tokens: Tokens, held: int) -> Tokens:
    """Return the suffix of all known ``tokens`` that a cache holding ``held`` entries has not seen: feed only this.

    Raises ``ValueError`` if the cache holds everything (no row for the next token would come back) or more.
    """
    if not 0 <= held < len(tokens):
        raise ValueError(
            f"the cache holds {held} entries for {len(tokens)} known tokens, expected fewer entries than tokens"
        )
    return tokens[held:]


def crop(entries: Any, keep: int, axis: int = -2) -> Any:
    """Return the first ``keep`` positions of keys or values along ``axis`` (a view, of any array type).

    The default axis is that of ``[batch, heads, positions, head_size]``. Raises ``ValueError`` if ``keep`` is negative
    or more than is there, instead of what a slice would silently do.
    """
    held = entries.shape[axis]
    if not 0 <= keep <= held:
        raise ValueError(f"cannot keep {keep} of {held} cache positions, expected a length between 0 and {held}")
    index = [slice(None)] * entries.ndim
    index[axis] = slice(0, keep)
    return entries[tuple(index)]
