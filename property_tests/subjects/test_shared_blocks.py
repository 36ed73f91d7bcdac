"""Batched engines whose rows share cache blocks: a block must be freed only after its last row has ended."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.subjects.engine_making import Made
from specverify.subjects.request_lists import AT_ONCE, ENDING_AT_ONCE, ENDING_SHARED_BEGINNING, SHARED_BEGINNING
from test_support.subjects.engine_laws import law_verdict, one_round

pytestmark = pytest.mark.usefixtures("unexplained")

GAMMA = 3


class Engine:
    """Rows of cache blocks; rows with the same beginning share its blocks, and freed blocks are used again.

    ``early`` is whether a row that ends frees the blocks that other rows still use.
    """

    def __init__(self, scenario, size, slots, *, early):
        """Take the models of a scenario, the tokens of a block, and the number of rows that are decoded together."""
        self.scenario, self.size, self.slots, self.early = scenario, size, slots, early
        self.rng = np.random.default_rng()
        self.blocks, self.users, self.free, self.filed = [], [], [], {}

    def add(self, table, token):
        """Append a token to the last block of ``table``, or to a new block."""
        if not table or len(self.blocks[table[-1]]) == self.size:
            if not self.free:
                self.free.append(len(self.blocks))
                self.blocks.append([])
                self.users.append(0)
            table.append(self.free.pop())
            self.blocks[table[-1]], self.users[table[-1]] = [], 1
            self.filed = {text: block for text, block in self.filed.items() if block != table[-1]}
        self.blocks[table[-1]].append(token)

    def read(self, table):
        """Return the text in the blocks of ``table``."""
        return tuple(token for block in table for token in self.blocks[block])

    def start(self, prompt):
        """Return a table with the prompt; full blocks that another row has filled are shared."""
        table = []
        for end in range(self.size, len(prompt), self.size):
            block = self.filed.get(prompt[:end])
            if block is None or not self.users[block]:
                break
            table.append(block)
            self.users[block] += 1
            self.free = [other for other in self.free if other != block]
        for token in prompt[len(table) * self.size :]:
            self.add(table, token)
        self.filed |= {prompt[: end * self.size]: table[end - 1] for end in range(1, len(prompt) // self.size + 1)}
        return table

    def end(self, table):
        """Free the blocks of a row that has ended."""
        for block in table:
            self.users[block] -= 1
            if (self.early or not self.users[block]) and block not in self.free:
                self.free.append(block)

    def round(self, table, left):
        """Return the new tokens of one round after the text in the blocks of ``table``."""
        return one_round(self.scenario, self.read(table), min(GAMMA, left - 1), self.rng)

    def decode(self, prompts):
        """Return a row of new tokens for each prompt."""
        waiting, running, new = list(range(len(prompts))), {}, [()] * len(prompts)
        while waiting or running:
            while waiting and len(running) < self.slots:
                running[waiting[0]] = self.start(tuple(prompts[waiting[0]]))
                waiting = waiting[1:]
            for row, table in list(running.items()):
                for token in self.round(table, self.scenario.horizon - len(new[row])):
                    self.add(table, token)
                    new[row] += (token,)
                    if token == self.scenario.eos or len(new[row]) == self.scenario.horizon:
                        self.end(running.pop(row))
                        break
        return new


def verdict_of(requests, size, slots, *, early):
    """Return the verdict on ``requests`` alone."""
    stops = bool(requests[0].scenario.eos)
    return law_verdict(
        lambda scenario: Made(Engine(scenario, size, slots, early=early).decode, batched=True, stops=stops), requests
    )


CASES = [(SHARED_BEGINNING, 4, 3), (SHARED_BEGINNING, 16, 2)]
CASES += [(ENDING_SHARED_BEGINNING, size, slots) for size in (4, 8, 16) for slots in (2, 3, 99)]


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("requests", "size", "slots"), CASES)
def test_a_block_that_is_freed_before_its_last_row_has_ended_is_refuted(requests, size, slots):
    assert verdict_of([requests], size, slots, early=True).status is Status.REFUTED
    assert verdict_of([requests], size, slots, early=False).status is Status.HOLDS


def test_batches_without_a_long_row_of_the_same_beginning_do_not_show_it():
    assert verdict_of(AT_ONCE, 16, 99, early=True).status is Status.HOLDS
    assert verdict_of(ENDING_AT_ONCE, 16, 99, early=True).status is Status.HOLDS
