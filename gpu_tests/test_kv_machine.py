"""Two caches through any interleaving of drafts, verifications, rejections, empty rounds, restarts and reordered rows.

The state machine is that of ``cache_machine``, on every kind of cache. Planted mistakes must be found by the same
machine.
"""

# ruff: noqa: D102 (what a mistake changes is said where the machine does it right)

from __future__ import annotations

import pytest
import torch
from hypothesis import Verbosity

from test_support.gpu.cache_machine import CacheMachine, run
from test_support.gpu.caches import Held, Rows

MACHINES = [
    ("llama", "DynamicCache(), reference"),
    ("gpt2", "DynamicCache(), library"),
    ("llama", "StaticCache, reference"),
    ("mistral", "DynamicCache(config) recording, library"),
    ("gemma3", "DynamicCache(config) recording, reference"),
    ("t5", "EncoderDecoderCache dynamic, library"),
    ("bart", "EncoderDecoderCache dynamic, reference"),
    ("mamba2", "DynamicCache(config), snapshot"),
    ("falcon_h1", "DynamicCache(config), snapshot"),
    ("lfm2", "DynamicCache(config) recording, library"),
]


@pytest.mark.thorough(keep=10)
@pytest.mark.parametrize(("architecture", "kind_name"), MACHINES)
def test_any_interleaving_leaves_prefills_of_the_committed_tokens(
    architecture: str, kind_name: str, device: torch.device
) -> None:
    run(CacheMachine, architecture, kind_name, device, max_examples=8)


# Planted mistakes


class OneEntryTooMany(CacheMachine):
    """Planted bug: the target's cache keeps the first rejected draft."""

    def target_keep(self, known: int, gamma: int, accepted: int) -> int:
        return min(super().target_keep(known, gamma, accepted) + 1, known + gamma)


class OneEntryTooFew(CacheMachine):
    """Planted bug: the target's cache loses an accepted token."""

    def target_keep(self, known: int, gamma: int, accepted: int) -> int:
        return super().target_keep(known, gamma, accepted) - 1


class DrafterKeepsAll(CacheMachine):
    """Planted bug: rejected drafts stay in the drafter's cache."""

    def draft_keep(self, known: int, gamma: int, accepted: int) -> int:  # noqa: ARG002 - as in the machine
        return self.draft.held


class DrafterIsFedOneToken(CacheMachine):
    """Planted bug: the drafter is fed only the last token, also when it lacks more.

    It lacks more after full acceptance, or after a round in which it did not draft.
    """

    def uncached(self, rows: Rows, held: int) -> Rows:
        return tuple(row[-1:] for row in rows) if held else super().uncached(rows, held)


class RestartKeepsTheDrafter(CacheMachine):
    """Planted bug: a restart keeps the drafter's cache, cropped to the length of the new sequences."""

    def new_draft_cache(self, source: Rows) -> Held:
        before = self.draft
        if before is None or len(before.fed) != len(source) or not min(before.held, self.known - 1):
            return super().new_draft_cache(source)
        before.prune(min(before.held, self.known - 1))
        return before


class DrafterKeepsItsRows(CacheMachine):
    """Planted bug: rows are reordered in the target's cache only."""

    def reorder_draft(self, rows: list[int]) -> None:
        if len(rows) != len(self.committed):
            super().reorder_draft(rows)


class AbandonedDraftsStay(CacheMachine):
    """Planted bug: drafts that are never verified stay in the drafter's cache."""

    def abandon_drafts(self) -> None:
        pass


class SnapshotKeepsItsRows(CacheMachine):
    """Planted bug: rows are reordered in the drafter's cache, but not in the snapshot from which it may be restored."""

    def reorder_draft(self, rows: list[int]) -> None:
        remembered, self.draft.remembered = self.draft.remembered, None
        self.draft.reorder(rows)
        self.draft.remembered = remembered
        if remembered is not None and len(rows) != len(self.committed):
            remembered.reorder_cache(torch.tensor(rows, device=self.device))


PLANTED = [
    *((mistake, *MACHINES[i]) for i in (0, 2, 3, 6, 7) for mistake in (OneEntryTooMany, OneEntryTooFew)),
    *((mistake, *MACHINES[0]) for mistake in (DrafterKeepsAll, DrafterIsFedOneToken, AbandonedDraftsStay)),
    *((mistake, *MACHINES[0]) for mistake in (RestartKeepsTheDrafter, DrafterKeepsItsRows)),
    (DrafterKeepsItsRows, *MACHINES[6]),
    (SnapshotKeepsItsRows, *MACHINES[7]),
]


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(("mistake", "architecture", "kind_name"), PLANTED)
def test_planted_mistake_is_found_by_the_machine(
    mistake: type[CacheMachine], architecture: str, kind_name: str, device: torch.device
) -> None:
    """The control is the machine without the mistake, which holds in the test above."""
    with pytest.raises(AssertionError):
        run(mistake, architecture, kind_name, device, max_examples=200, verbosity=Verbosity.quiet)
