"""A table language model as a real model of transformers; its KV cache contains the token ids themselves.

``TableModel`` is a ``PreTrainedModel`` with ``generate``. Its next-token pmf is a row of a rational table of
``laws.tables``, selected by *all* tokens so far, so its law is a closed form. It stores no context: every forward pass
appends its input to an ordinary ``DynamicCache``, ids as keys and positions as values, and reads the context from the
cache. So each forward pass audits how the caller handles the cache:

* Lengths. The entries must have positions 0, 1, 2, ... and the first input token the next position, by
  ``position_ids`` and the width of the ``attention_mask`` if given. ``generate`` counts positions independently of the
  cache, so a cache that was not cropped, cropped too far or fed twice raises ``CacheFault`` at once.
* Contents. A cache of the right length with a wrong token raises no error. It gives a wrong context, and almost always
  another row, so it shows as a wrong law. So does a wrong row of logits chosen by the caller.

Not covered: padding (refused), windows, several layers that disagree, attention masks that hide tokens, hidden states.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from specverify.engines.huggingface.install import INSTALL
from specverify.laws.tables import SHAPES, table_pair
from specverify.reference.types import LanguageModel, Tokens

try:
    import torch
    from transformers import DynamicCache, GenerationMixin, PreTrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutputWithPast
except ImportError as error:
    raise ImportError(f"the table model needs torch and transformers: {INSTALL}") from error

SIDES = ("target", "draft")


class CacheFault(RuntimeError):  # noqa: N818 - not a mistake of the program that raises it
    """Raised if the positions of the cache entries do not fit the input tokens."""


class TableConfig(PreTrainedConfig):  # type: ignore[no-untyped-call, unused-ignore]
    """The config of a table model, which has the rows of ``laws.tables`` in place of weights.

    ``shape`` (a key of ``laws.tables.SHAPES``), ``seed`` and ``vocab_size`` select the tables. The two values of
    ``side``, "target" and "draft", are a target and its draft model. The other fields are those that ``transformers``
    requires of a config.
    """

    model_type = "specverify_table"

    vocab_size: int = 4
    shape: str = "generic"
    side: str = "target"
    seed: int = 0
    num_hidden_layers: int = 1
    num_attention_heads: int = 1
    hidden_size: int = 1
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    pad_token_id: int | None = None
    tie_word_embeddings: bool = False


class TableModel(PreTrainedModel, GenerationMixin):  # type: ignore[no-untyped-call, unused-ignore]
    """A causal language model whose forward pass looks up a table."""

    config_class = TableConfig
    main_input_name = "input_ids"

    def __init__(self, config: TableConfig) -> None:
        """Create the model of ``config``. Raises ``ValueError`` for an unknown shape or side."""
        super().__init__(config)
        if config.shape not in SHAPES or config.side not in SIDES:
            raise ValueError(
                f"the table is {config.shape!r}, {config.side!r}, expected one of {', '.join(SHAPES)} and one of "
                f"{', '.join(SIDES)}"
            )
        self.inverse_temperature = torch.nn.Parameter(torch.ones(1))
        """The only weight: log pmfs are multiplied by it, so that what was saved and loaded matters."""
        self.post_init()  # type: ignore[no-untyped-call, unused-ignore]

    def next_pmf(self, tokens: Tokens) -> tuple[Fraction, ...]:
        """Return the next-token pmf after all of ``tokens`` from the table, at temperature 1."""
        return tuple(_table(self.config.shape, self.config.side, self.config.vocab_size, self.config.seed)(tokens))

    def forward(
        self,
        input_ids: Any,
        attention_mask: Any = None,
        position_ids: Any = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Return logits ``[batch, kept, vocabulary]`` after each of the last ``logits_to_keep`` input ids (0: all).

        Args:
            input_ids: The input, ``[batch, fed]``.
            attention_mask: Ones, ``[batch, held + fed]``; the cache has ``held`` entries.
            position_ids: The positions of the input; by default those after the cache.
            past_key_values: The cache, to which the input is appended.
            use_cache: False: no cache is created, and none is returned.
            logits_to_keep: Number of last input ids.

        Raises:
            CacheFault: If cache and input do not fit.
            ValueError: For a mask that contains a 0.
        """
        batch, fed = input_ids.shape
        if past_key_values is None and use_cache is not False:
            past_key_values = DynamicCache(config=self.config)
        held = 0 if past_key_values is None else past_key_values.get_seq_length()
        positions = position_ids if position_ids is not None else torch.arange(held, held + fed)
        positions = torch.as_tensor(positions).expand(batch, fed)
        if attention_mask is not None and not bool((attention_mask == 1).all()):
            raise ValueError("the attention mask has entries that are not 1, expected no padding")
        ids = input_ids
        if past_key_values is not None:
            ids, stored = past_key_values.update(_entries(input_ids), _entries(positions), 0)
            ids, positions = ids[:, 0, :, 0], stored[:, 0, :, 0]
        _audit(ids.tolist(), positions.tolist(), fed, None if attention_mask is None else attention_mask.shape[1])
        kept = min(logits_to_keep, fed) or fed
        rows = [[self._logits(tuple(row[: len(row) - kept + 1 + i])) for i in range(kept)] for row in ids.tolist()]
        logits = torch.tensor(rows, dtype=torch.float64, device=input_ids.device).log()
        return CausalLMOutputWithPast(
            logits=(logits * self.inverse_temperature).float(),
            past_key_values=past_key_values if use_cache is not False else None,
        )

    def _logits(self, tokens: Tokens) -> list[float]:
        return [float(mass) for mass in self.next_pmf(tokens)]

    def _init_weights(self, module: Any) -> None:
        """Do nothing with ``module``: the only weight of the model, the inverse temperature, stays 1."""


def build_table(vocabulary: int, seed: int, *, shape: str = "generic", side: str = "target") -> TableModel:
    """Return a table model over ``vocabulary`` tokens, in eval mode on the CPU.

    ``shape`` is a key of ``laws.tables.SHAPES``. ``side`` is "target" or "draft", for a target and a draft model of one
    shape and seed. Raises ``ValueError`` for an unknown shape or side.
    """
    model = TableModel(TableConfig(vocab_size=vocabulary, seed=seed, shape=shape, side=side))
    model.train(mode=False)
    return model


def table_law(model: TableModel, prompt: Tokens, horizon: int) -> dict[Tokens, Fraction]:
    """Return new tokens -> exact probability, of sampling ``horizon`` tokens after ``prompt`` from ``model``.

    The temperature is 1. Texts of probability 0 are left out.
    """
    law: dict[Tokens, Fraction] = {(): Fraction(1)}
    for _ in range(horizon):
        law = {
            (*new, token): weight * mass
            for new, weight in law.items()
            for token, mass in enumerate(model.next_pmf((*prompt, *new)))
            if mass
        }
    return law


@lru_cache(maxsize=64)
def _table(shape: str, side: str, vocabulary: int, seed: int) -> LanguageModel:
    return table_pair(shape, vocabulary, seed)[SIDES.index(side)]


def _entries(rows: Any) -> Any:
    """Return ``rows``, ``[batch, length]``, in the shape ``[batch, 1, length, 1]`` of a KV cache with one head."""
    return rows[:, None, :, None]


def _audit(ids: list[list[int]], positions: list[list[int]], fed: int, masked: int | None) -> None:
    """Raise ``CacheFault`` unless the positions of each row are 0, 1, 2, ... and the attention mask covers all of them.

    ``ids`` and ``positions`` are those of the cache entries and the ``fed`` input tokens; ``masked`` is the length of
    the mask, or None without one.
    """
    for row, stands in zip(ids, positions, strict=True):
        held, expected = len(row) - fed, list(range(len(row)))
        if stands != expected or masked not in {None, len(row)}:
            mask = "" if masked is None else f" under a mask of {masked}"
            raise CacheFault(
                f"the cache held {row[:held]} at positions {stands[:held]} when {row[held:]} came for positions "
                f"{stands[held:]}{mask}, expected {expected[:held]} to be held and {expected[held:]} to come"
            )
