"""Batched kernels in torch, vectorised: right ones, and ones with a bug in their random numbers."""

from __future__ import annotations

import torch


def decide(p, q, drafts, coins, final):
    """Chain verification, the last token by inverse CDF; ``[rows, gamma + 1]`` padded with -1."""
    gamma = drafts.shape[1]
    mine = p[:, :gamma].gather(2, drafts[:, :, None])[:, :, 0]
    theirs = q.gather(2, drafts[:, :, None])[:, :, 0]
    accepted = (coins * theirs < mine).to(torch.int64).cumprod(dim=1).sum(dim=1)
    at = accepted[:, None, None].expand(-1, 1, p.shape[2])
    row = p.gather(1, at)[:, 0]
    other = q.gather(1, at.clamp(max=gamma - 1))[:, 0]
    rejected = (accepted < gamma)[:, None]
    excess = torch.where(rejected, (row - other).clamp(min=0), row)
    excess = torch.where((excess > 0).any(dim=1, keepdim=True), excess, row)
    cumulative = excess.double().cumsum(dim=1)
    beyond = (cumulative > final[:, None] * cumulative[:, -1:]) & (excess > 0)
    last = torch.where(beyond.any(dim=1), beyond.to(torch.int8).argmax(dim=1), p.shape[2] - 1)
    place = torch.arange(gamma + 1, device=p.device)
    tokens = torch.cat([drafts, last[:, None]], dim=1)
    tokens = torch.where(place == accepted[:, None], last[:, None], tokens)
    return tokens.masked_fill(place > accepted[:, None], -1)


def generator(seed, offset, device):
    """Return a generator for (seed, offset), mixed by the finaliser of splitmix64 so that neighbours differ."""
    x = (seed * 0x9E3779B97F4A7C15 + offset + 1) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> shift)) * factor % 2**64
    return torch.Generator(device=device).manual_seed((x ^ (x >> 31)) % 2**63)


def numbers(drafts, seed, offset, columns=None):
    """Return uniforms, one row for each row of drafts."""
    columns = columns or drafts.shape[1] + 1
    source = generator(seed, offset, drafts.device)
    return torch.rand(len(drafts), columns, dtype=torch.float64, device=drafts.device, generator=source)


def given(p, q, drafts, accept_uniforms, final_uniforms):
    """Right kernel that takes its uniforms as arguments."""
    return decide(p, q, drafts, accept_uniforms, final_uniforms)


def keyed(p, q, drafts, seed, offset):
    """Right kernel, keyed by seed and offset."""
    u = numbers(drafts, seed, offset)
    return decide(p, q, drafts, u[:, :-1], u[:, -1])


def its_own(p, q, drafts):
    """Right kernel that draws from the global generator."""
    u = torch.rand(len(drafts), drafts.shape[1] + 1, dtype=torch.float64, device=drafts.device)
    return decide(p, q, drafts, u[:, :-1], u[:, -1])


def shared_stream(p, q, drafts, seed, offset):
    """Planted bug: the stream of row 64 is that of row 0."""
    u = numbers(drafts, seed, offset)[torch.arange(len(drafts), device=drafts.device) % 64]
    return decide(p, q, drafts, u[:, :-1], u[:, -1])


def reseeded(p, q, drafts):
    """Planted bug: every call seeds the generator."""
    torch.manual_seed(1234)
    return its_own(p, q, drafts)


def coin_again(p, q, drafts, seed, offset):
    """Planted bug: the replacement is drawn with the coin that rejected the draft."""
    u = numbers(drafts, seed, offset)
    return decide(p, q, drafts, u[:, :-1], u[:, 0])


def one_coin(p, q, drafts, seed, offset):
    """Planted bug: one coin decides every draft."""
    u = numbers(drafts, seed, offset, columns=2)
    return decide(p, q, drafts, u[:, :1].expand(-1, drafts.shape[1]), u[:, 1])
