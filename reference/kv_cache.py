"""The required contents of a key-value cache between rounds, and the tokens to feed next.

Count known tokens, not cache entries. A round starts with ``known`` committed tokens. The target's cache holds ``known
- 1`` of them (the last one has not been fed) and the drafter's at most as many. The verifying pass feeds ``x_known, d_1
.. d_gamma``: the target then holds ``known + gamma`` entries. The drafter has been fed all but its own last token and
holds ``known + gamma - 1``. After accepting n drafts and emitting one more token, ``known + n + 1`` tokens are known,
and every entry of a rejected draft must be removed.

Always crop to a length. Cropping by a negative count is the classic mistake: ``[: -0]`` empties the cache. If a library
can only remove a count, remove ``held - keep``, and call nothing if that is 0.

A tree of drafts (SpecInfer, arXiv:2305.09781; Medusa, arXiv:2401.10774) is ``parents``: node j is a child of node
``parents[j] < j``, or of the last known token for -1. Nodes are fed in order after that token, each at the position of
its depth, and the entries of the accepted path are gathered before the rest is cropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from .types import Tokens
from .validation import argument_error, as_tuple, check_integer, check_integers, is_integer


class KeepLengths(NamedTuple):
    """The number of entries to keep in the target's cache and in the drafter's, from the start of the sequence."""

    target: int
    draft: int


def keep_lengths(known: int, gamma: int, accepted: int, draft_held: int | None = None) -> KeepLengths:
    """Return how many entries each cache keeps after ``accepted`` of ``gamma`` drafts were accepted.

    Args:
        known: Number of committed tokens before the round.
        gamma: Number of drafts.
        accepted: Number of accepted drafts. If it is ``gamma``, the drafter keeps one entry fewer than the target,
            because its last draft was not fed to it.
        draft_held: Number of entries in the drafter's cache before the crop, if it is not ``known + gamma - 1``. It
            is at most ``known + gamma``: all drafts were fed to the drafter.

    Raises:
        ValueError: For counts that no round can produce.
    """
    check_integers(known=known, gamma=gamma, accepted=accepted, draft_held=0 if draft_held is None else draft_held)
    if known < 1:
        raise ValueError(f"{known} tokens are known, expected at least 1: a round starts from a non-empty sequence")
    if gamma < 0:
        raise ValueError(f"gamma is {gamma}, expected at least 0")
    if not 0 <= accepted <= gamma:
        raise ValueError(f"{accepted} drafts accepted, expected a number between 0 and gamma = {gamma}")
    held = known + gamma - 1 if draft_held is None else draft_held
    if not 0 <= held <= known + gamma:
        raise ValueError(
            f"the drafter's cache holds {held} entries, expected at least 0 and at most {known + gamma}, the known "
            "tokens and the drafts"
        )
    return KeepLengths(target=known + accepted, draft=min(known + accepted, held))


def tokens_to_feed(tokens: Tokens, held: int) -> Tokens:
    """Return the suffix of all known ``tokens`` that is not in a cache of ``held`` entries, to be fed next.

    Raises ``ValueError`` if the cache holds all known tokens or more, so that nothing could be fed.
    """
    check_integers(held=held)
    known = len(as_tuple(tokens, "tokens", "a sequence of token ids"))
    if not 0 <= held < known:
        raise ValueError(f"the cache holds {held} entries for {known} known tokens, expected fewer entries than tokens")
    return tokens[held:]


def crop(entries: Any, keep: int, axis: int = -2) -> Any:
    """Return the first ``keep`` positions of ``entries``, keys or values, along ``axis``: a view, of any array type.

    The default axis is that of ``[batch, heads, positions, head_size]``. Raises ``ValueError`` if ``keep`` is negative
    or more than the number of positions.
    """
    check_integers(keep=keep)
    held = _positions(entries, axis)
    if not 0 <= keep <= held:
        raise ValueError(f"cannot keep {keep} of {held} cache positions, expected a length between 0 and {held}")
    index = [slice(None)] * entries.ndim
    index[axis] = slice(0, keep)
    return entries[tuple(index)]


def window_crop(held: int, stored: int, keep: int, window: int) -> slice:
    """Return the slice of the stored entries that a sliding-window layer keeps when its text is cut to ``keep`` tokens.

    The layer has seen ``held`` tokens and stores the last ``stored``. It keeps the ``window - 1`` entries before the
    next token (arXiv:2310.06825). Raises ``ValueError`` if one of these is no longer stored.
    """
    check_integers(held=held, stored=stored, keep=keep)
    check_integer(window, "the window")
    if not 0 <= stored <= held:
        raise ValueError(f"{stored} of {held} entries are stored, expected a number between 0 and {held}")
    first = max(0, keep - window + 1)
    if not 0 <= keep <= held or first < held - stored:
        raise ValueError(
            f"a sliding window of {window} needs entries {first} to {keep} to go on from {keep} tokens, but holds "
            f"{held - stored} to {held}: record what leaves the window until the drafts are verified, or feed again"
        )
    return slice(first - held + stored, keep - held + stored)


def check_croppable(names: Sequence[str], per_token: Sequence[str] = ("keys", "values")) -> None:
    """Raise ``ValueError`` for the first of a layer's state ``names`` that does not hold one entry per token.

    ``per_token`` are the names of states with one entry per token. A recurrent state (Mamba-2, arXiv:2405.21060) mixes
    all tokens it was fed and cannot be cropped.
    """
    if isinstance(names, str):
        raise argument_error("the names", names, "a sequence of names")
    for name in names:
        if name not in per_token:
            raise ValueError(
                f"{name!r} is one state for all tokens fed, not an entry for each, and cannot be cropped: restore a "
                "snapshot from before the drafts and feed the accepted ones again"
            )


def tree_depths(parents: Sequence[int]) -> tuple[int, ...]:
    """Return the depth of every node, 0 for the children of the last known token.

    The position of a node in the text is the number of known tokens plus its depth. Raises ``ValueError`` for a parent
    that is neither an earlier node nor -1.
    """
    depths: list[int] = []
    for node, parent in enumerate(parents):
        if not is_integer(parent) or not -1 <= parent < node:
            raise ValueError(
                f"node {node} has parent {parent}, expected an earlier node, or -1 for the last known token"
            )
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    return tuple(depths)


def tree_path(parents: Sequence[int], node: int) -> tuple[int, ...]:
    """Return the nodes from a child of the last known token down to ``node``; () for -1, which means all were rejected.

    Raises ``ValueError`` for another node, and if ``parents`` is no tree.
    """
    tree_depths(parents)
    check_integer(node, "the node", least=-1, most=len(parents) - 1)
    path: tuple[int, ...] = ()
    while node >= 0:
        path, node = (node, *path), parents[node]
    return path


def tree_mask(parents: Sequence[int], known: int) -> Any:
    """Return the attention mask, bool ``[1 + nodes, known + nodes]``.

    A row attends to itself, its ancestors and the known tokens. Row 0 is the last known token. Raises ``ValueError``
    for less than one known token, and if ``parents`` is no tree.
    """
    check_integer(known, "the number of known tokens")
    mask = np.tile(np.arange(known + len(parents)) < known, (1 + len(parents), 1))
    for node in range(len(parents)):
        mask[1 + node, [known + on_path for on_path in tree_path(parents, node)]] = True
    return mask


def keep_path(entries: Any, known: int, path: Sequence[int], axis: int = -2) -> Any:
    """Return the first ``known`` entries along ``axis``, followed by the entries of the nodes on ``path``.

    ``entries`` are keys or values ``[batch, heads, known + nodes, head_size]``; the result is ``[batch, heads, known +
    len(path), head_size]``. Raises ``ValueError`` for a node that does not exist.
    """
    held = _positions(entries, axis)
    check_integer(known, "the number of known tokens", least=0)
    check_integers(**{f"node {place} of the path": node for place, node in enumerate(path)})
    if known > held or any(not 0 <= node < held - known for node in path):
        raise ValueError(f"path {tuple(path)} behind {known} known tokens is not among the {held} entries of the cache")
    positions = [*range(known), *(known + node for node in path)]
    xp = array_namespace(entries)
    return xp.take(entries, xp.asarray(positions, dtype=xp.int64, device=entries.device), axis=axis)


def _positions(entries: Any, axis: int) -> int:
    """Return the number of positions along ``axis`` in ``entries``, keys or values."""
    shape = getattr(entries, "shape", None)
    if shape is None:
        raise argument_error("entries", entries, "an array of keys or values")
    check_integers(axis=axis)
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis is {axis}, expected one of the {len(shape)} axes of entries of shape {tuple(shape)}")
    return int(shape[axis])
