"""Every cache class, pruned after a speculative round in every way there is, against a fresh prefill of what was kept.

For gamma up to 8, every accepted length and both models: crop, feed what must be fed, and compare every layer's entries
(before and after the feed) and the next logits. What comes out is the table of ``docs/kv-caches.md``; ``pytest
gpu_tests/test_kv_caches.py --write-tables`` writes it, and without the option its rows and verdicts are checked, not
its digits. Everything is float64 against the bounds of ``cache_comparison``, but for one test of what float32 adds.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import pytest
import torch
import transformers

from reference.kv_cache import window_crop
from test_support.gpu.cache_comparison import VISIBLE, difference, fresh, relative_difference
from test_support.gpu.cache_kinds import HAS_FP8, KINDS, kind
from test_support.gpu.cache_rounds import (
    DRAFTS,
    EMITTED,
    GAMMAS,
    KNOWN,
    SIDES,
    VERDICTS,
    Outcome,
    before_pruning,
    rounds,
    worst,
)
from test_support.gpu.caches import Held, Kind
from test_support.gpu.tiny_models import CONVOLUTION, FULL, RECURRENT, WINDOWS, model_of

DOCUMENT = Path(__file__).parents[1] / "docs" / "kv-caches.md"
BEGIN, END = "<!-- generated: tables -->", "<!-- end of generated tables -->"


@cache
def measured(architecture: str, of: Kind, device: torch.device) -> tuple[Outcome, ...]:
    """Return the worst outcome for each accepted length, over both models and every gamma."""
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
    lines += ["", "Messages of the refusals (those about a window have the numbers of the first refused round):", ""]
    lines += ["\n\n".join(f"* {'; '.join(names)}\n\n      {refusal}" for refusal, names in words.items())]
    return "\n".join(
        [BEGIN, f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}", "", *lines, END]
    )


@pytest.fixture(scope="module")
def document(request: pytest.FixtureRequest, device: torch.device) -> str:
    """The document ``docs/kv-caches.md``, written again if ``--write-tables`` is given."""
    text = DOCUMENT.read_text(encoding="utf-8")
    if request.config.getoption("--write-tables"):
        text = text[: text.index(BEGIN)] + table(device) + text[text.index(END) + len(END) :]
        DOCUMENT.write_text(text, encoding="utf-8")
    return text


@pytest.fixture(scope="module")
def committed(document: str) -> dict[str, list[str]]:
    """The cells of every row of the committed table, by the row's name."""
    generated = document[document.index(BEGIN) : document.index(END)]
    rows = [line.strip("| ").split(" | ") for line in generated.splitlines() if line.startswith("| ")]
    return {", ".join(cells[:3]): cells[3 : 3 + len(GAMMAS)] for cells in rows[1:]}


@pytest.fixture(scope="module")
def is_of_this_version(document: str) -> bool:
    return f"transformers {transformers.__version__}," in document


def test_the_committed_table_has_a_row_for_every_class_and_model(committed: dict[str, list[str]]) -> None:
    assert [name for name in committed if HAS_FP8 or "fp8" not in name] == ROW_NAMES


@pytest.mark.thorough(keep=24)
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


@pytest.mark.thorough(keep=12)
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


def test_models_that_run_foreign_kernels_are_left_out(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that would run kernels of the package ``causal_conv1d`` are left out.

    Those kernels have no float64, and they are not code of transformers.
    """
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "causal_conv1d" else None)
    for architecture in (*RECURRENT, *CONVOLUTION):
        with pytest.raises(pytest.skip.Exception, match=f"{architecture} runs kernels of causal_conv1d"):
            model_of.__wrapped__(architecture, device)


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
