"""Outcomes that nobody has looked at, put into tensors: one row of noise for all positions, of which one is used."""

from __future__ import annotations

import pytest
import torch

from specverify.base.verdict import Status
from test_support.verifiers.in_scenarios import verdict


def by_slice(buffer, found):
    buffer[:] = found
    return buffer


def one_by_one(buffer, found):
    for place, token in enumerate(found):
        buffer[place] = token
    return buffer


def with_leading_ones(buffer, found):
    for place, token in enumerate(found):
        buffer[place] = token.reshape(1, 1)
    return buffer


PUT = {
    "leading ones": with_leading_ones,
    "slice": by_slice,
    "one by one": one_by_one,
    "copy": lambda buffer, found: buffer.copy_(found),
    "scatter": lambda buffer, found: buffer.scatter_(0, torch.arange(len(buffer)), found),
    "index copy": lambda buffer, found: buffer.index_copy_(0, torch.arange(len(buffer)), found),
    "index put": lambda buffer, found: buffer.index_put_((torch.arange(len(buffer)),), found),
    "masked scatter": lambda buffer, found: buffer.masked_scatter_(torch.ones_like(buffer, dtype=torch.bool), found),
}


def sharing_noise(put, owed=lambda p, q: torch.clamp(p - q, min=0)):
    """A race of each position by one row of noise; the winner at the first rejection replaces the draft there."""

    def verify(p, q, draft_tokens):
        noise = torch.empty(p.shape[-1], dtype=p.dtype).exponential_()
        recovered = put(torch.empty_like(draft_tokens), (owed(p[:-1], q) / noise).argmax(-1))
        u, at = torch.rand(len(draft_tokens), dtype=p.dtype), draft_tokens[:, None]
        accepted = u < p[:-1].gather(1, at)[:, 0] / q.gather(1, at)[:, 0]
        count = int(accepted.long().cumprod(0).sum())
        if count == len(draft_tokens):
            return torch.cat([draft_tokens, torch.multinomial(p[-1], 1)])
        return torch.cat([draft_tokens[:count], recovered[count : count + 1]])

    return verify


@pytest.mark.thorough
@pytest.mark.parametrize("name", PUT)
def test_noise_that_positions_share_decides_one_thing(name):
    verify = sharing_noise(PUT[name])
    assert verdict(verify, "draws_are_independent", 1).status is Status.HOLDS
    assert verdict(verify, "law_is_target", 12).status is Status.HOLDS


@pytest.mark.thorough
def test_its_law_is_the_targets_and_that_of_its_twin_is_not():
    assert verdict(sharing_noise(by_slice), "law_is_target").status is Status.HOLDS
    wrong = sharing_noise(by_slice, owed=lambda p, q: p)
    assert verdict(wrong, "law_is_target").status is Status.REFUTED


@pytest.mark.thorough
def test_noise_of_two_positions_that_are_both_used_is_refuted():
    def verify(p, q, draft_tokens):
        noise = torch.empty(p.shape[-1], dtype=p.dtype).exponential_()
        tokens = by_slice(torch.empty(len(p), dtype=torch.int64), (p / noise).argmax(-1))
        same = int((tokens[:-1] == draft_tokens).long().cumprod(0).sum())
        return torch.cat([draft_tokens[:same], tokens[same : same + 1]])

    assert verdict(verify, "draws_are_independent", 1).status is not Status.HOLDS
    assert verdict(verify, "law_is_target").status is not Status.HOLDS


@pytest.mark.parametrize(("again", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_what_was_looked_at_is_in_the_memory_of_the_buffer(again, status):
    """It is read there when the calls are over: a new one in each call is what it was, one for all is overwritten."""
    kept = torch.empty(8, dtype=torch.int64)
    right = sharing_noise(by_slice)

    def verify(p, q, draft_tokens):
        found = right(p, q, draft_tokens)
        buffer = kept[: len(found)] if again else torch.empty_like(found)
        buffer[:] = found
        return buffer

    assert verdict(verify, "outputs_are_fresh").status is status


def test_what_was_written_over_what_had_been_looked_at_is_in_the_memory_too():
    def verify(p, q, draft_tokens):
        tokens = torch.full((len(p),), -1)
        tokens[:1] = torch.multinomial(p[0], 1)
        if tokens[0] >= 0:
            tokens[:1].mul_(0)
        return tokens

    assert verdict(verify, "outputs_are_fresh", 4).status is Status.HOLDS
