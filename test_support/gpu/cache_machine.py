"""A state machine of a target and a drafter with caches, on batches of sequences that commit equally many tokens.

After every step each cache must equal a prefill of the committed tokens (and, during a round, of the drafts that were
fed): every layer, every row. The rows of the verifying pass must equal the logits of that prefill. Drafts are arbitrary
tokens, so nothing depends on what a model would propose.
"""

# ruff: noqa: D102 (rules are named after what happens, as tests are)

from __future__ import annotations

from typing import Any

import torch
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reference.kv_cache import keep_lengths, tokens_to_feed
from test_support.gpu.cache_comparison import bound, difference, fresh, relative_difference
from test_support.gpu.cache_kinds import CAPACITY, kind
from test_support.gpu.caches import Held, Rows
from test_support.gpu.tiny_models import VOCABULARY, model_of

LONGEST_DRAFT = 4
LONGEST_PROMPT = 6
tokens = st.integers(0, VOCABULARY - 1)
SOURCES = ((2, 7, 1, 8), (3, 1, 4, 1), (5, 5, 0, 9))


def columns(length: int | st.SearchStrategy[int]) -> Any:
    """Return a strategy of ``length`` columns; each has one token for every possible row."""
    lengths = length if isinstance(length, st.SearchStrategy) else st.just(length)
    column = st.tuples(*(tokens for _ in SOURCES))
    return lengths.flatmap(lambda n: st.lists(column, min_size=n, max_size=n))


class CacheMachine(RuleBasedStateMachine):
    """State machine of rounds on ``batch`` rows; a subclass chooses architecture, cache and device."""

    architecture = "llama"
    kind_name = "DynamicCache(), reference"
    device = torch.device("cpu")

    def __init__(self) -> None:
        """Start without caches: the first rule starts a batch."""
        super().__init__()
        self.committed: Rows = ()
        self.drafts: Rows = ()
        self.phase = "nothing"
        self.moves = self.reordered_at = self.balance = 0
        self.target: Any = None
        self.draft: Any = None

    # What a mistake changes

    def target_keep(self, known: int, gamma: int, accepted: int) -> int:
        return keep_lengths(known, gamma, accepted).target

    def draft_keep(self, known: int, gamma: int, accepted: int) -> int:
        return keep_lengths(known, gamma, accepted, draft_held=self.draft.held).draft

    def uncached(self, rows: Rows, held: int) -> Rows:
        return tuple(tokens_to_feed(row, held) for row in rows)

    def new_draft_cache(self, source: Rows) -> Held:
        model = model_of(self.architecture, self.device, seed=1)
        return Held(model, kind(self.kind_name), fed=((),) * len(source), source=source)

    def reorder_draft(self, rows: list[int]) -> None:
        self.draft.reorder(rows)

    def abandon_drafts(self) -> None:
        """Remove the drafts and the last known token from the drafter's cache.

        Drafting again starts from the logits of that token.
        """
        self.draft.prune(min(self.known - 1, self.draft.held))

    # Rules

    @property
    def known(self) -> int:
        return len(self.committed[0])

    @property
    def pending(self) -> Rows:
        """Return the committed tokens and drafts of every row."""
        return tuple(row + drafts for row, drafts in zip(self.committed, self.drafts, strict=True))

    def start(self, prompt: list[tuple[int, ...]], batch: int) -> None:
        source = SOURCES[:batch]
        self.committed = tuple(zip(*prompt, strict=True))[:batch]
        self.drafts, self.phase = ((),) * batch, "idle"
        model = model_of(self.architecture, self.device)
        self.target = Held(model, kind(self.kind_name), fed=((),) * batch, source=source)
        self.draft = self.new_draft_cache(source)
        for held in (self.target, self.draft):
            if held.held < self.known - 1:
                held.feed(tuple(row[held.held : -1] for row in self.committed))
            held.before_drafting()
        self.moves, self.reordered_at, self.balance = 1, 0, 0

    @initialize(prompt=columns(st.integers(1, LONGEST_PROMPT)), batch=st.sampled_from([3, 2, 1]))
    def begin(self, prompt: list[tuple[int, ...]], batch: int) -> None:
        self.start(prompt, batch)

    @precondition(lambda self: self.moves > 4)
    @rule(prompt=columns(st.integers(1, LONGEST_PROMPT)), batch=st.sampled_from([3, 2, 1]))
    def restart(self, prompt: list[tuple[int, ...]], batch: int) -> None:
        """Start with other sequences, at any time; an unfinished round is dropped."""
        self.start(prompt, batch)

    @precondition(lambda self: self.phase == "idle" and self.known + LONGEST_DRAFT < CAPACITY)
    @rule(drafted=columns(st.integers(1, LONGEST_DRAFT)))
    def draft_some(self, drafted: list[tuple[int, ...]]) -> None:
        """Feed the drafter the tokens that its cache lacks, then each of its drafts except the last."""
        self.draft.before_drafting()
        for column in drafted:
            self.draft.feed(self.uncached(self.pending, self.draft.held))
            self.drafts = tuple((*drafts, token) for drafts, token in zip(self.drafts, column, strict=False))
        self.phase, self.moves, self.balance = "drafted", self.moves + 1, self.balance + 1

    @precondition(lambda self: self.phase == "idle" and self.known + 1 < CAPACITY and self.balance > 0)
    @rule()
    def draft_nothing(self) -> None:
        """Draft nothing (gamma 0): the drafter is not fed. Such rounds are at most as many as the others."""
        self.phase, self.moves, self.balance = "drafted", self.moves + 1, self.balance - 1

    @precondition(lambda self: self.phase == "drafted" and self.drafts[0])
    @rule()
    def abandon(self) -> None:
        """Abandon drafts without verifying them."""
        self.abandon_drafts()
        self.drafts, self.phase, self.moves = ((),) * len(self.committed), "idle", self.moves + 1

    @precondition(lambda self: self.phase == "drafted")
    @rule()
    def verify(self) -> None:
        self.target.before_drafting()
        fed = tuple(tokens_to_feed(row, self.known - 1) for row in self.pending)
        logits = self.target.feed(fed)
        expected = fresh(self.target.model, self.target.kind, self.pending, self.target.source).logits
        assert relative_difference(logits, expected[:, self.known - 1 :]) < bound(self.architecture)
        self.phase, self.moves = "verified", self.moves + 1

    @precondition(lambda self: self.phase == "verified")
    @rule(emitted=columns(1))
    def reject_all(self, emitted: list[tuple[int, ...]]) -> None:
        self.settle(0, emitted[0])

    @precondition(lambda self: self.phase == "verified")
    @rule(emitted=columns(1))
    def accept_all(self, emitted: list[tuple[int, ...]]) -> None:
        self.settle(len(self.drafts[0]), emitted[0])

    @precondition(lambda self: self.phase == "verified")
    @rule(emitted=columns(1), share=st.integers(0, LONGEST_DRAFT))
    def accept_some(self, emitted: list[tuple[int, ...]], share: int) -> None:
        self.settle(min(share, len(self.drafts[0])), emitted[0])

    def settle(self, accepted: int, emitted: tuple[int, ...]) -> None:
        known, gamma = self.known, len(self.drafts[0])
        self.draft.prune(self.draft_keep(known, gamma, accepted))
        self.target.prune(self.target_keep(known, gamma, accepted))
        rows = zip(self.committed, self.drafts, emitted, strict=False)
        self.committed = tuple((*row, *drafts[:accepted], token) for row, drafts, token in rows)
        self.drafts, self.phase, self.moves = ((),) * len(self.committed), "idle", self.moves + 1

    @precondition(lambda self: self.phase != "nothing" and self.reordered_at < self.moves)
    @rule(picked=st.lists(st.integers(0, 2), min_size=1, max_size=3))
    def reorder(self, picked: list[int]) -> None:
        """Repeat some rows and drop others, in both caches."""
        self.pick([row % len(self.committed) for row in picked])

    @precondition(lambda self: self.reordered_at < self.moves and len(self.committed) > 1)
    @rule()
    def reverse(self) -> None:
        """Reverse the order of the rows."""
        self.pick(list(range(len(self.committed)))[::-1])

    def pick(self, rows: list[int]) -> None:
        self.reordered_at = self.moves
        self.target.reorder(rows)
        self.reorder_draft(rows)
        self.committed, self.drafts = (tuple(of[row] for row in rows) for of in (self.committed, self.drafts))

    # What must hold

    @invariant()
    def each_cache_is_a_prefill(self) -> None:
        if self.phase == "nothing":
            return
        assert self.target.held == (len(self.pending[0]) if self.phase == "verified" else self.known - 1)
        assert self.draft.held < max(self.known + len(self.drafts[0]), 1)
        for held in (self.target, self.draft):
            if held.held:
                rows = tuple(row[: held.held] for row in self.pending)
                expected = fresh(held.model, held.kind, rows, held.source)
                assert difference(held.cache, expected) < bound(self.architecture)


def run(machine: type[CacheMachine], architecture: str, kind_name: str, device: torch.device, **options: Any) -> None:
    named = {"architecture": architecture, "kind_name": kind_name, "device": device}
    chosen = settings(
        derandomize=True,
        database=None,
        deadline=None,
        stateful_step_count=16,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # 16 steps are few enough to read, and every attempt to shrink them runs the models
        **options,
    )
    run_state_machine_as_test(type(machine.__name__, (machine,), named), settings=chosen)
