"""Every cache class, pruned after a speculative round in every way there is, against a fresh prefill of what was kept.

For gamma up to 8, every accepted length and both models: crop, feed what must be fed, and compare every layer's entries
(before and after the feed) and the next logits. What comes out is the table of ``docs/kv-caches.md``; ``pytest
gpu_tests/test_kv_caches.py --write-tables`` writes it, and without the option its rows and verdicts are checked, not
its digits. Everything is float64 against the bounds of ``caches``; planted mistakes are off by more than ``VISIBLE``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from caches import (
    DIFFERENT_LENGTH,
    FULL,
    HAS_FP8,
    KINDS,
    RECURRENT,
    WINDOWS,
    Held,
    Kind,
    bound,
    crop_layer,
    difference,
    fresh,
    kind,
    model_of,
    own_layers,
    relative_difference,
)

from reference.kv_cache import crop, keep_lengths, tokens_to_feed, window_crop

DOCUMENT = Path(__file__).parents[1] / "docs" / "kv-caches.md"
BEGIN, END = "<!-- generated: tables -->", "<!-- end of generated tables -->"
VISIBLE = 1e-3
KNOWN = (3, 1, 4, 1, 5)
DRAFTS = (9, 2, 6, 5, 3, 5, 8, 9)
EMITTED = 7
GAMMAS = range(len(DRAFTS) + 1)
SIDES = ("target", "draft")


class Outcome(NamedTuple):
    """What became of one round."""

    verdict: str
    """One of ``VERDICTS``."""
    largest: float = 0.0
    """The largest relative difference: of everything, or of the next logits alone for ``other positions``."""
    words: str = ""
    """The exception, if any."""


VERDICTS = ("equal", "refused", "fails", "differs", "other positions")
"""From best to worst; a cell of the table shows the worst of its rounds.

``refused``: pruning raised. ``fails``: the feed behind it raised. ``other positions``: a layer says that it holds
another number of tokens than were kept, so what is fed next has another position.
"""


def worst(outcomes: list[Outcome]) -> Outcome:
    return max(outcomes, key=lambda outcome: (VERDICTS.index(outcome.verdict), outcome.largest))


def before_pruning(model: Any, of: Kind, side: str, gamma: int, known: tuple[int, ...] = KNOWN) -> Held:
    """The target's cache after a verifying pass, or the drafter's after drafting: never fed its own last token."""
    held = Held(model, of)
    if known[:-1]:
        held.feed((known[:-1],))
    held.before_drafting()
    if side == "target":
        held.feed((tokens_to_feed(known, held.held) + DRAFTS[:gamma],))
    else:
        for i in range(gamma):
            held.feed((tokens_to_feed(known + DRAFTS[:i], held.held),))
    return held


def settle(held: Held, keep: int, tokens: tuple[int, ...], before: int) -> Outcome:
    """Prune to ``keep``, feed the rest of ``tokens`` and compare with fresh prefills."""
    try:
        held.prune(keep)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        return Outcome("refused", words=f"{type(error).__name__}: {error}")
    found = difference(held.cache, fresh(held.model, held.kind, (tokens[:keep],), before=before)) if keep else 0.0
    expected = fresh(held.model, held.kind, (tokens,), before=before)
    try:
        logits = held.feed((tokens_to_feed(tokens, keep),))[:, -1]
    except (IndexError, RuntimeError, ValueError) as error:
        return Outcome("fails", words=f"{type(error).__name__}: {error}")
    of_logits = relative_difference(logits, expected.logits[:, -1])
    largest = max(found, of_logits, difference(held.cache, expected))
    if largest == DIFFERENT_LENGTH:
        return Outcome("other positions", of_logits)
    return Outcome("equal" if largest < bound(held.model.config.model_type) else "differs", largest)


def rounds(
    model: Any, of: Kind, side: str, gammas: range = GAMMAS, known: tuple[int, ...] = KNOWN
) -> Iterator[tuple[int, int, Outcome]]:
    """gamma, the accepted length and what became of it, for all of them."""
    for gamma in gammas:
        held = before_pruning(model, of, side, gamma, known)
        for accepted in range(gamma + 1):
            keep = getattr(keep_lengths(len(known), gamma, accepted), side)
            tokens = (*known, *DRAFTS[:accepted], EMITTED)
            yield gamma, accepted, settle(held.copy(), keep, tokens, len(known) - 1)


@cache
def measured(architecture: str, of: Kind, device: torch.device) -> tuple[Outcome, ...]:
    """The worst outcome by accepted length, over both models and every gamma."""
    found: list[list[Outcome]] = [[] for _ in GAMMAS]
    for side in SIDES:
        for _, accepted, outcome in rounds(model_of(architecture, device), of, side):
            found[accepted].append(outcome)
    return tuple(map(worst, found))


# The table

ROWS = [(of, architecture) for of in KINDS for architecture in of.models if HAS_FP8 or "fp8" not in of.cache]
ROW_NAMES = [f"{of.name}, {architecture}" for of, architecture in ROWS]
BY_REFERENCE = ("reference", "snapshot")


def shown(outcome: Outcome) -> str:
    amount = f" {outcome.largest:.1g}" if outcome.verdict in {"differs", "other positions"} else ""
    return outcome.verdict + amount


def verdict_of(cell: str) -> str:
    return next(verdict for verdict in VERDICTS if cell.startswith(verdict))


def table(device: torch.device) -> str:
    heads = ["cache", "pruned by", "model", *map(str, GAMMAS), "largest where equal"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    words: dict[str, list[str]] = {}
    for of, architecture in ROWS:
        outcomes = measured(architecture, of, device)
        equal = max(outcome.largest for outcome in outcomes if outcome.verdict == "equal")
        cells = [of.cache, of.pruned_by, architecture, *map(shown, outcomes), f"{equal:.0e}"]
        lines.append("| " + " | ".join(cells) + " |")
        refusal = next((outcome.words for outcome in outcomes if outcome.verdict == "refused"), None)
        if refusal:
            words.setdefault(refusal, []).append(f"{of.name}, {architecture}")
    lines += ["", "Refused in these words (a window's numbers are those of the first round refused):", ""]
    lines += [f"* {'; '.join(names)}\n\n      {refusal}" for refusal, names in words.items()]
    return "\n".join(
        [BEGIN, f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}", "", *lines, END]
    )


@pytest.fixture(scope="module")
def document(request: pytest.FixtureRequest, device: torch.device) -> str:
    """The document, written anew if that is asked for."""
    text = DOCUMENT.read_text(encoding="utf-8")
    if request.config.getoption("--write-tables"):
        text = text[: text.index(BEGIN)] + table(device) + text[text.index(END) + len(END) :]
        DOCUMENT.write_text(text, encoding="utf-8")
    return text


@pytest.fixture(scope="module")
def committed(document: str) -> dict[str, list[str]]:
    """The cells of every committed row by its name."""
    generated = document[document.index(BEGIN) : document.index(END)]
    rows = [line.strip("| ").split(" | ") for line in generated.splitlines() if line.startswith("| ")]
    return {", ".join(cells[:3]): cells[3 : 3 + len(GAMMAS)] for cells in rows[1:]}


@pytest.fixture(scope="module")
def is_of_this_version(document: str) -> bool:
    return f"transformers {transformers.__version__}," in document


def test_the_committed_table_has_a_row_for_every_class_and_model(committed: dict[str, list[str]]) -> None:
    assert [name for name in committed if HAS_FP8 or "fp8" not in name] == ROW_NAMES


@pytest.mark.parametrize(("of", "architecture"), ROWS, ids=ROW_NAMES)
def test_verdicts_are_those_of_the_committed_table(
    of: Kind, architecture: str, device: torch.device, committed: dict[str, list[str]], is_of_this_version: bool
) -> None:
    """The library's own pruning is held to the table of the version that the table is of; ours always."""
    outcomes = measured(architecture, of, device)
    verdicts = [outcome.verdict for outcome in outcomes]
    if of.pruned_by in BY_REFERENCE:
        assert set(verdicts) <= {"equal", "refused"}, outcomes
    if of.pruned_by in BY_REFERENCE or is_of_this_version:
        assert verdicts == [verdict_of(cell) for cell in committed[f"{of.name}, {architecture}"]], outcomes
    if not is_of_this_version and of.pruned_by not in BY_REFERENCE:
        pytest.skip(f"the table is not of transformers {transformers.__version__}")


def test_every_class_can_be_pruned_by_some_way_that_is_exact(committed: dict[str, list[str]]) -> None:
    exact = {name for name, cells in committed.items() if {verdict_of(cell) for cell in cells} == {"equal"}}
    for of, architecture in ROWS:
        named = of.cache.removesuffix(" recording")
        assert any(name.startswith(named) and name.endswith(f", {architecture}") for name in exact), (named, exact)


# Windows that fill up during the round


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("known", range(1, len(KNOWN)))
@pytest.mark.parametrize("architecture", WINDOWS)
@pytest.mark.parametrize("pruned_by", ["library", "reference"])
def test_windows_that_fill_up_during_a_round_go_back(
    architecture: str, pruned_by: str, known: int, side: str, device: torch.device
) -> None:
    of = kind(f"DynamicCache(config) recording, {pruned_by}")
    for found in rounds(model_of(architecture, device), of, side, range(6), KNOWN[:known]):
        assert found[-1].verdict == "equal", found


def test_a_window_keeps_what_the_next_token_attends_to() -> None:
    assert [window_crop(held=13, stored=11, keep=keep, window=4) for keep in (5, 9, 13)] == [
        slice(0, 3),
        slice(4, 7),
        slice(8, 11),
    ]
    assert window_crop(held=3, stored=3, keep=2, window=4) == slice(0, 2)
    with pytest.raises(ValueError, match="needs entries 1 to 4 to go on from 4 tokens, but holds 2 to 13: record"):
        window_crop(held=13, stored=11, keep=4, window=4)


# Storage that rounds, and float32


@pytest.mark.skipif(not HAS_FP8, reason="this transformers has no fp8 cache")
def test_fp8_storage_is_far_from_a_prefill_even_without_drafts(device: torch.device) -> None:
    """Why its rows are compared with a cache that never saw the rejected drafts, and not with a prefill."""
    model, of = model_of("llama", device), kind("QuantizedCache fp8, reference")
    held = before_pruning(model, of, "target", gamma=0)
    prefilled = fresh(model, kind("DynamicCache(), reference"), (KNOWN,))
    assert VISIBLE < difference(held.cache, prefilled) < 0.5


@pytest.mark.parametrize("architecture", FULL)
def test_in_float32_pruned_caches_are_as_near_as_two_correct_computations(
    architecture: str, device: torch.device
) -> None:
    """The rounding is measured: a whole prefill against one token at a time. Nothing else is allowed to be added."""
    model, of = model_of(architecture, device, torch.float32), kind("DynamicCache(), reference")
    tokens = (*KNOWN, *DRAFTS, EMITTED)
    step_by_step, rounding = Held(model, of), 0.0
    for i in range(len(tokens)):
        logits = step_by_step.feed(((tokens[i],),))
        expected = fresh(model, of, (tokens[: i + 1],))
        of_logits = relative_difference(logits[:, -1], expected.logits[:, -1])
        rounding = max(rounding, of_logits, difference(step_by_step.cache, expected))
    found = max(outcome.largest for side in SIDES for _, _, outcome in rounds(model, of, side))
    assert 0 < rounding < 1e-5
    assert found < 4 * rounding


# Planted mistakes


def planted(good: Kind, prune: Callable[[Kind, Held, int], None], **changes: Any) -> Kind:
    return good._replace(prune=lambda held, keep: prune(good, held, keep), **changes)


def keep_one_more(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, min(keep + 1, held.held))


def keep_one_less(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, keep - 1)


def negative_zero(good: Kind, held: Held, keep: int) -> None:
    surplus = held.held - keep
    for layer in own_layers(held.cache):
        layer.keys, layer.values = layer.keys[..., :-surplus, :], layer.values[..., :-surplus, :]


def nothing(good: Kind, held: Held, keep: int) -> None:
    """Rejected drafts stay."""


def stale_positions(good: Kind, held: Held, keep: int) -> None:
    """The entries go back and the count of tokens, from which positions are made, does not."""
    good.prune(held, keep)
    for layer in own_layers(held.cache):
        if hasattr(layer, "cumulative_length"):
            layer.cumulative_length = held.held


def cross_attention_too(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, keep)
    for layer in held.cache.cross_attention_cache.layers:
        layer.keys, layer.values = crop(layer.keys, 3), crop(layer.values, 3)


def cross_attention_instead(good: Kind, held: Held, keep: int) -> None:
    for layer in held.cache.cross_attention_cache.layers:
        crop_layer(layer, layer.keys.shape[-2], min(keep, 3))


def first_layer_only(good: Kind, held: Held, keep: int) -> None:
    crop_layer(own_layers(held.cache)[0], held.held, keep)


def keys_only(good: Kind, held: Held, keep: int) -> None:
    for layer in own_layers(held.cache):
        layer.keys = crop(layer.keys, keep)
        layer.values = torch.cat([layer.values[..., : keep - 1, :], layer.values[..., -1:, :]], dim=-2)


def restored_and_not_fed_again(good: Kind, held: Held, keep: int) -> None:
    held.cache = copy.deepcopy(held.remembered)


def emptied(good: Kind, held: Held, keep: int) -> None:
    held.cache.reset()


class Planted(NamedTuple):
    """A mistake, where it is planted, and the accepted lengths of 4 drafts at which it must be found."""

    name: str
    kind: str
    models: tuple[str, ...]
    prune: Callable[[Kind, Held, int], None]
    found_at: tuple[int, ...] = (0, 1, 2, 3)
    remember: Callable[[Any], Any] | None = None


def unchanged(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, keep)


EVERY = (0, 1, 2, 3, 4)
DYNAMIC, STATIC = "DynamicCache(), reference", "StaticCache, reference"
SLIDING, OF_ENCODER_DECODERS = "DynamicCache(config) recording, reference", "EncoderDecoderCache dynamic, reference"
SNAPSHOT = "DynamicCache(config), snapshot"
MISTAKES = [
    Planted("one entry too many", DYNAMIC, FULL, keep_one_more),
    Planted("one entry too many, static", STATIC, FULL, keep_one_more),
    Planted("one entry too many, sliding", SLIDING, WINDOWS, keep_one_more),
    Planted("one entry too many, encoder-decoder", OF_ENCODER_DECODERS, ("t5", "bart"), keep_one_more),
    Planted("one token too many, recurrent", SNAPSHOT, RECURRENT, keep_one_more),
    Planted("one entry too few", DYNAMIC, FULL, keep_one_less, EVERY),
    Planted("one entry too few, static", STATIC, FULL, keep_one_less, EVERY),
    Planted("one entry too few, sliding", SLIDING, WINDOWS, keep_one_less, EVERY),
    Planted("one entry too few, encoder-decoder", OF_ENCODER_DECODERS, ("t5", "bart"), keep_one_less, EVERY),
    Planted("one token too few, recurrent", SNAPSHOT, RECURRENT, keep_one_less, EVERY),
    Planted("crop by -0", DYNAMIC, FULL, negative_zero, (4,)),
    Planted("rejected drafts stay", DYNAMIC, FULL, nothing),
    Planted("rejected drafts stay, static", STATIC, FULL, nothing),
    Planted("stale positions, sliding", SLIDING, WINDOWS, stale_positions),
    Planted("cross-attention pruned too", OF_ENCODER_DECODERS, ("t5", "bart"), cross_attention_too, EVERY),
    Planted("cross-attention pruned instead", OF_ENCODER_DECODERS, ("t5", "bart"), cross_attention_instead, EVERY),
    Planted("first layer only", DYNAMIC, FULL, first_layer_only),
    Planted("keys only", DYNAMIC, FULL, keys_only),
    Planted("emptied instead of rolled back", STATIC, FULL, emptied, EVERY),
    Planted("snapshot that shares its tensors", SNAPSHOT, RECURRENT, unchanged, remember=copy.copy),
    Planted("snapshot not fed again", SNAPSHOT, RECURRENT, restored_and_not_fed_again, EVERY),
]


@pytest.mark.parametrize(
    ("mistake", "architecture"),
    [
        pytest.param(mistake, architecture, id=f"{mistake.name}, {architecture}")
        for mistake in MISTAKES
        for architecture in mistake.models
    ],
)
def test_planted_mistake_is_found_and_its_control_holds(
    mistake: Planted, architecture: str, device: torch.device
) -> None:
    model, good = model_of(architecture, device), kind(mistake.kind)
    bad = planted(good, mistake.prune, **({"remember": mistake.remember} if mistake.remember else {}))
    of_good = {accepted: outcome for _, accepted, outcome in rounds(model, good, "target", range(4, 5))}
    of_bad = {accepted: outcome for _, accepted, outcome in rounds(model, bad, "target", range(4, 5))}
    assert {outcome.verdict for outcome in of_good.values()} == {"equal"}
    found = {
        accepted
        for accepted, outcome in of_bad.items()
        if outcome.verdict in {"other positions", "fails"} or outcome.largest > VISIBLE
    }
    assert found == set(mistake.found_at), of_bad


@pytest.mark.parametrize("architecture", FULL)
def test_planted_positions_counted_before_the_crop_are_found(architecture: str, device: torch.device) -> None:
    model, of = model_of(architecture, device), kind(DYNAMIC)
    tokens = (*KNOWN, DRAFTS[0], EMITTED)
    expected = fresh(model, of, (tokens,))
    for position, is_right in ((len(tokens) - 1, True), (len(KNOWN) + 4, False)):
        held = before_pruning(model, of, "target", gamma=4)
        held.prune(len(tokens) - 1)
        logits = held.feed((tokens[-1:],), position_ids=torch.tensor([[position]], device=device))
        of_logits = relative_difference(logits[:, -1], expected.logits[:, -1])
        largest = max(of_logits, difference(held.cache, expected))
        assert largest < bound(architecture) if is_right else largest > VISIBLE
