"""A language model as a torch network, so that an engine that takes networks is examined on given pmfs.

The network returns the logarithms of the model's pmfs as logits. It has no weights and stores no context: its cache of
keys and values contains the token ids (keys) and their positions (values). In each forward pass, the text before a
query token is read from the entries that this token may attend to. So a stale entry, a wrong position, a wrong mask or
a cache that was not cropped gives the pmf after another text, as in a real network.

A query token attends to the entries of the cache, itself and the tokens before it, except those that the attention mask
hides or that are outside the window of a sliding-window cache. The text is their tokens in the order of their
positions. Positions count as in rotary embeddings: only their differences matter. Where a position is missing or occurs
twice, the text gets an additional token 0, so that a wrong position gives another row.

In a real network, keys and values of all layers but the first depend on the entries that their token attended to. So a
value also has a digest of that text. Where it differs from the text before the entry, as after a prefill with a wrong
mask or in a block of another prompt, the text gets an additional token 0 too. Digests are compared only in a text that
is whole, from its first token on. If a mask or the engine itself leaves out the oldest tokens, as a sliding window
does, the entries of a text saw different parts of it, and their digests state nothing. Entries of a sliding-window
cache, and of caches that return copies or that round to 16 bits, have no digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from inspect import signature
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from specverify.base.positions import WRONG_POSITION
from specverify.reference import LanguageModel, Tokens
from specverify.reference.validation import argument_error, shown
from specverify.subjects.subject import Forward

try:
    import torch

    from specverify.intercept.torch.calls import without_interception
except ImportError as error:
    raise ImportError('a network needs torch: pip install "specverify-suite[torch]"') from error

_Entries = list[list[int]]
"""Token ids or positions, by row."""
MOST_POSITIONS = 2**16
"""More positions than the tokens of any scenario; some loops read their limit from the config of a network."""
DIGESTS = 113
"""Number of digests of texts of several tokens, a prime."""
BEGINNING, PART = 126, 127
"""The digest of an entry that attended to itself alone, and that of one that attended to a text with a part left out.
With a position, a digest makes a whole number below 2**23, which is exact in float32."""
HIDDEN = -1000
"""Values of an additive attention mask at or below this one hide an entry."""


class NetworkOutput(NamedTuple):
    """The result of a forward pass; its fields have the names that they have in transformers."""

    logits: Any
    """``[B, length, vocabulary]``, or for the last tokens of the input only (``logits_to_keep``)."""
    past_key_values: Any = None
    """The cache with the new entries; None with ``use_cache=False`` or for a network without a cache."""


class Network(torch.nn.Module):
    """The network that ``specverify.testing.torch_network`` returns; ``only_logits`` is ``returns == "logits"``."""

    def __init__(
        self, model: LanguageModel, vocabulary: int, dtype: str, cache: str | None, *, only_logits: bool
    ) -> None:
        """Create a network over ``vocabulary`` tokens whose logits are the logarithms of the pmfs of ``model``.

        ``dtype`` is the name of the dtype of the logits, and ``cache`` the kind of KV cache: "tuple", "dynamic" (a
        class of transformers) or None. With ``only_logits`` a forward pass returns a tensor of logits. Raises
        ``ImportError`` for "dynamic" if transformers is not installed.
        """
        super().__init__()
        self.model, self.vocabulary, self.cache, self.only_logits = model, vocabulary, cache, only_logits
        self.rows: dict[Tokens, Any] = {}
        self.unused = torch.nn.Parameter(torch.zeros(1, dtype=getattr(torch, dtype)), requires_grad=False)
        self.config = _config(vocabulary, cache)

    @property
    def device(self) -> torch.device:
        """Return the device of the network."""
        return self.unused.device

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the logits."""
        return self.unused.dtype

    def forward(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        cache_position: Any = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> Any:
        """Return the logits after each input token, and the cache.

        The parameters are those of a causal model of transformers: ``input_ids`` ``[B, length]`` or ``[length]``,
        ``attention_mask`` ``[B, held + length]`` (1: visible) or ``[B or 1, heads or 1, length, held + length]``
        (bool, or 0 where visible), ``position_ids`` ``[B or 1, length]``. Raises ``ValueError`` for a mask of another
        shape, a token outside the vocabulary, a cache if the network has none, and a cache that rounds its entries, or
        loses some without a window.
        """
        if not isinstance(input_ids, torch.Tensor):
            raise argument_error("input_ids", input_ids, "a tensor [B, length]")
        flat = input_ids.dim() == 1
        ids = [input_ids.tolist()] if flat else input_ids.tolist()
        if past_key_values is not None and self.cache is None:
            raise ValueError("the network was made with cache=None, expected no past_key_values")
        past = past_key_values
        if past is None and use_cache is not False:
            past = _new_cache(self.cache)
        given = _Pass(ids, past, attention_mask, position_ids, cache_position, logits_to_keep)
        with given.by_torch_alone():
            texts = given.texts()
        rows = [[self._row(text) for text in of_row] for of_row in texts.before]
        logits = torch.tensor(np.array(rows), dtype=self.dtype, device=self.device)
        logits = logits[0] if flat else logits
        return logits if self.only_logits else NetworkOutput(logits, texts.past if use_cache is not False else None)

    def read_pass(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Forward:
        """Return the number of entries in the cache before a call of this network, and its first row of input."""
        given = signature(self.forward).bind(*args, **kwargs).arguments
        fed = given["input_ids"]
        return Forward(_held(given.get("past_key_values")), fed if fed.dim() == 1 else fed[0])

    def _row(self, text: Tokens) -> Any:
        """Return the logits ``[vocabulary]`` after ``text``; zeros if it is empty, as for a token of padding."""
        if text not in self.rows:
            wrong = next((token for token in text if not 0 <= token < self.vocabulary), None)
            if wrong is not None:
                raise ValueError(f"input_ids contain the token {wrong}, expected 0 to {self.vocabulary - 1}")
            with np.errstate(divide="ignore"):
                row = np.log(self._pmf(text)) if text else np.zeros(self.vocabulary)
            self.rows[text] = row
        return self.rows[text]

    def _pmf(self, text: Tokens) -> Any:
        """Return the model's pmf after ``text``. Raises ``ValueError`` unless it is a row of non-negative numbers."""
        given = self.model(text)
        try:
            row = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            row = np.empty(0)
        if row.shape != (self.vocabulary,) or not (row >= 0).all():
            raise ValueError(f"the model's pmf after {text} is {shown(given)}, expected {self.vocabulary} numbers >= 0")
        return row


class _Texts(NamedTuple):
    """The texts ``[B, length]`` before the tokens of a forward pass, each with its token, and the cache after it."""

    before: list[list[Tokens]]
    past: Any


class _Pass(NamedTuple):
    """The arguments of a forward pass: token ids ``[B, length]``, and those of ``Network.forward``."""

    ids: _Entries
    past: Any
    mask: Any
    position_ids: Any
    cache_position: Any
    logits_to_keep: int

    def by_torch_alone(self) -> AbstractContextManager[Any]:
        """Return a context manager in which torch executes the pass without interception, if it need not be seen.

        It draws nothing. But the tensors may hold random numbers, and a cache of another class may be the user's code.
        """
        if not isinstance(self.past, (tuple, list, type(None))):
            return nullcontext()
        given = (self.mask, self.position_ids, self.cache_position)
        return without_interception((*given, *(tensor for layer in self.past or () for tensor in layer)))

    def texts(self) -> _Texts:
        """Append the tokens to the cache, and return the texts that they follow, as the entries have them."""
        batch, length = len(self.ids), len(self.ids[0])
        held = _held(self.past)
        first = held if self.cache_position is None else int(self.cache_position.flatten()[0])
        if self.position_ids is None:
            positions = [list(range(first, first + length))] * batch
        else:
            positions = torch.as_tensor(self.position_ids).expand(batch, length).tolist()
        entries, past = _stored(self.past, self.ids, positions)
        queries = range(length)[-min(self.logits_to_keep, length) :]
        window, number = _window(past), len(entries.tokens[0])
        dropped = max(0, held + length - number)
        if dropped and window is None:
            raise ValueError(f"the cache returned {number} entries, expected {held + length}")
        begin = held if number == held + length else first
        whole = window is None and _hides_nothing(self.mask, batch, first + length)
        if whole and entries.are_in_order(first + length):
            texts = [[tuple(row[: first + query + 1]) for query in queries] for row in entries.tokens]
            digests = [_digests(row)[first:] for row in entries.tokens]
        else:
            visible = _visible(self.mask, (batch, length, number), first, dropped, window)
            read = range(length) if entries.values is not None and window is None else queries
            views = [[entries.view(row, visible[row][query]) for query in read] for row in range(batch)]
            texts = [[view.tokens for view in of_row[-len(queries) :]] for of_row in views]
            digests = [entries.digests_of(row, of_row, begin) for row, of_row in enumerate(views)]
        if entries.values is not None and window is None:
            _keep_digests(entries.values, begin, digests)
        return _Texts(texts, past)


def _config(vocabulary: int, cache: str | None) -> Any:
    """Return the config of a network of one layer over ``vocabulary`` tokens.

    If ``cache`` is a cache of transformers, it is an object of transformers' class.
    """
    values: dict[str, Any] = {
        "vocab_size": vocabulary,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "hidden_size": 1,
        "max_position_embeddings": MOST_POSITIONS,
    }
    if cache != "dynamic":
        return SimpleNamespace(**values, is_encoder_decoder=False)
    try:
        from transformers import PreTrainedConfig  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(
            'cache="dynamic" needs transformers: pip install "specverify-suite[hf]", or pass cache="tuple" or None'
        ) from error
    return PreTrainedConfig(**values)


def _new_cache(cache: str | None) -> Any:
    if cache == "dynamic":
        from transformers import DynamicCache  # noqa: PLC0415 - an extra

        return DynamicCache()
    return () if cache == "tuple" else None


def _held(past: Any) -> int:
    """Return the number of entries of the cache ``past``; 0 for None and for an empty tuple."""
    if past is None or isinstance(past, (tuple, list)):
        return past[0][0].shape[2] if past else 0
    return int(past.get_seq_length())


class _View(NamedTuple):
    """The text that one query token attends to: its ``tokens``, in the order of their positions.

    ``first`` is the index of the entry of its first token, 0 if there is none. ``in_order`` states whether its
    positions follow each other without a gap.
    """

    tokens: Tokens
    first: int
    in_order: bool


class _Held(NamedTuple):
    """The entries of a cache, or of one pass without a cache: for each row, and in a row for each entry."""

    tokens: _Entries
    """Token ids."""
    places: _Entries
    """Positions."""
    digests: _Entries
    """Digests of the texts that entries were computed from, each with the token of the entry; 0: not known."""
    values: Any = None
    """The tensor of values, from which positions and digests were read; None without a cache."""

    def are_in_order(self, number: int) -> bool:
        """Return whether each row has ``number`` entries at positions 0, 1, ..., computed after the entries before."""
        if any(place != list(range(number)) for place in self.places):
            return False
        return all(map(_belong_to, self.digests, self.tokens))

    def view(self, row: int, visible: Sequence[bool]) -> _View:
        """Return the visible tokens of ``row``, in the order of their positions.

        The token 0 (``WRONG_POSITION``) is inserted for each missing position between two tokens, between two tokens
        with the same position, and, in a whole text, after a token that was computed from another text.
        """
        entries = sorted((place, index) for index, place in enumerate(self.places[row]) if visible[index])
        tokens, digests = ([item[row][index] for _, index in entries] for item in (self.tokens, self.digests))
        in_order = all(place == entries[0][0] + number for number, (place, _) in enumerate(entries))
        first = entries[0][1] if entries else 0
        whole = in_order and digests[:1] in ([0], [BEGINNING])
        if in_order and (not whole or _belong_to(digests, tokens)):
            return _View(tuple(tokens), first, in_order)
        text: list[int] = []
        for number, (place, _) in enumerate(entries):
            step = place - entries[number - 1][0] if number else 1
            text += [*[WRONG_POSITION] * (step - 1 if step else 1), tokens[number]]
            if whole and digests[number] not in {0, _digests(text)[-1]}:
                text.append(WRONG_POSITION)
        return _View(tuple(text), first, in_order)

    def digests_of(self, row: int, views: Sequence[_View], begin: int) -> list[int]:
        """Return the digest of each of the entries of ``row`` from index ``begin`` on, which attend to ``views``."""
        alone = {begin + number for number, view in enumerate(views) if len(view.tokens) == 1}
        known = {index for index, digest in enumerate(self.digests[row][:begin]) if digest in {0, BEGINNING}}
        return [
            PART if view.tokens and not (view.in_order and view.first in alone | known) else _digest(view.tokens)
            for view in views
        ]


def _keep_digests(values: Any, begin: int, digests: Sequence[Sequence[int]]) -> None:
    """Add the digests of new entries, ``[B, length]``, to ``values`` ``[B, 1, entries, 1]``, from entry ``begin`` on.

    A value that would be rounded is left as it is. All are left if there are fewer entries than digests.
    """
    new = values[:, 0, begin : begin + len(digests[0]), 0]
    if new.shape[1] < len(digests[0]):
        return
    marks = torch.tensor(digests, dtype=new.dtype).mul_(MOST_POSITIONS)
    if new.dtype is torch.float64 and not bool((new < 0).any()):  # nothing is rounded
        new.add_(marks)
        return
    marked = torch.where(new >= 0, new + marks, new)
    new.copy_(torch.where(marked - marks == new, marked, new))


def _digest(tokens: Tokens) -> int:
    """Return the digest of the text ``tokens``; 1 for the empty text of a token that the mask hides."""
    return _digests(tokens)[-1] if tokens else 1


def _digests(tokens: Sequence[int]) -> list[int]:
    """Return the digest of each beginning of the text ``tokens``, from its first token on."""
    return _digests_of(tuple(tokens))


@lru_cache(maxsize=2**14)
def _digests_of(tokens: Tokens) -> list[int]:
    """Return ``_digests(tokens)``: ``BEGINNING``, then sums of the tokens, each times a weight of its index.

    The sums are taken modulo ``DIGESTS``.
    """
    weights = 1 + (np.arange(1, len(tokens) + 1) * 2_654_435_761 % 2**32 >> 16) % (DIGESTS - 1)
    sums = np.cumsum((np.array(tokens, dtype=np.int64) + 2) * weights)
    return [BEGINNING, *(1 + sums[1:] % DIGESTS).tolist()] if tokens else []


def _belong_to(digests: Sequence[int], tokens: Sequence[int]) -> bool:
    """Return whether all known ``digests`` are those of the beginnings of the text ``tokens``."""
    return all(seen in {0, right} for seen, right in zip(digests, _digests(tokens), strict=True))


def _stored(past: Any, ids: _Entries, positions: _Entries) -> tuple[_Held, Any]:
    """Append ``ids`` and ``positions`` ``[B, length]`` to the cache ``past``, or to no cache if it is None.

    Returns all entries, and the cache.
    """
    if past is None:
        return _Held(ids, positions, [[0] * len(row) for row in ids]), None
    fed = torch.tensor([ids, positions], dtype=torch.float64)[:, :, None, :, None].unbind()
    if isinstance(past, (tuple, list)):
        entries = [torch.cat((old, new), dim=2) for old, new in zip(past[0], fed, strict=True)] if past else fed
        past = (tuple(entries),)
    else:
        entries = past.update(*fed, 0)
    stored = [item[:, 0, :, 0].tolist() for item in entries]
    tokens, places = ([[int(entry) for entry in row] for row in item] for item in stored)
    if [tokens, places] != stored:
        raise ValueError("the cache changed the values of its entries: quantised caches are not covered")
    digests = [[max(0, value // MOST_POSITIONS) for value in row] for row in places]
    places = [[value % MOST_POSITIONS if value > 0 else value for value in row] for row in places]
    return _Held(tokens, places, digests, entries[1]), past


def _window(past: Any) -> int | None:
    """Return how many tokens a query token attends to, if the cache ``past`` is a sliding-window cache of transformers.

    Return None for any other cache.
    """
    layer: Any = next(iter(getattr(past, "layers", ())), None)
    if not getattr(layer, "is_sliding", False):
        return None
    return int(getattr(layer, "sliding_window", None) or layer.max_cache_len)


def _hides_nothing(mask: Any, batch: int, entries: int) -> bool:
    return mask is None or (tuple(mask.shape) == (batch, entries) and bool(mask.all()))


def _visible(
    mask: Any, shape: tuple[int, int, int], first: int, dropped: int, window: int | None
) -> list[list[list[bool]]]:
    """Return, for each row and each query token, which entries it attends to.

    ``shape`` is (rows, query tokens, entries). ``dropped`` is the number of entries that a window has removed, and
    ``first`` the index of the first query token if these are counted too. A query token that a mask of two dimensions
    hides attends to nothing.
    """
    batch, length, entries = shape
    first -= dropped
    least = [first + query - (entries if window is None else window) for query in range(length)]
    causal = [[least[query] < entry <= first + query for entry in range(entries)] for query in range(length)]
    if mask is None:
        return [causal] * batch
    if mask.dim() == 2 and mask.shape[0] == batch and mask.shape[1] - dropped in {entries, first + length}:
        seen = [[bool(value) for value in row[dropped:]] for row in mask.tolist()]
        seen = [[*row, *[False] * (entries - len(row))] for row in seen]
        return [
            [
                [causal[query][entry] and row[entry] and row[first + query] for entry in range(entries)]
                for query in range(length)
            ]
            for row in seen
        ]
    if mask.dim() == 4 and mask.shape[0] in {1, batch} and tuple(mask.shape[2:]) == (length, entries):
        of_row = (mask if mask.dtype is torch.bool else mask > HIDDEN)[:, 0].tolist()
        return [of_row[0 if len(of_row) == 1 else row] for row in range(batch)]
    raise ValueError(
        f"attention_mask has shape {tuple(mask.shape)}, expected [{batch}, {entries}] or [{batch}, 1, {length}, "
        f"{entries}]"
    )
