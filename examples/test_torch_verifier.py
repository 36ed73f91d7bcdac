"""A verifier of batches in torch: p [B, gamma + 1, V], q [B, gamma, V], drafts [B, gamma] -> rows padded with -1."""

from functools import partial

import pytest
import torch

from specverify.testing import SpeculationRefuted, check_verifier, parametrize_with_checks


def verify(p: torch.Tensor, q: torch.Tensor, draft_tokens: torch.Tensor, *, residual: bool = True) -> torch.Tensor:
    """Verify a batch, without a loop over its rows."""
    rows, gamma = draft_tokens.shape
    drafted = draft_tokens.unsqueeze(-1)
    coins = torch.rand(rows, gamma, dtype=q.dtype)
    accepted = coins * q.gather(2, drafted).squeeze(-1) < p[:, :gamma].gather(2, drafted).squeeze(-1)
    number = accepted.long().cumprod(dim=1).sum(dim=1)
    weights = p[torch.arange(rows), number]
    if residual:
        theirs = torch.cat([q, torch.zeros_like(p[:, :1])], dim=1)[torch.arange(rows), number]
        excess = (weights - theirs).clamp(min=0)
        weights = torch.where(excess.sum(dim=1, keepdim=True) > 0, excess, weights)
    last = torch.multinomial(weights, 1)
    places = torch.arange(gamma + 1)
    padded = torch.cat([draft_tokens, torch.full_like(drafted[:, :1, 0], -1)], dim=1)
    kept = torch.where(places < number.unsqueeze(1), padded, -1)
    return torch.where(places == number.unsqueeze(1), last, kept)


@parametrize_with_checks([partial(check_verifier, verify, form="batched", gammas=(1, 2))])
def test_the_verifier(check) -> None:
    """Run one check."""
    check()


def test_the_bug_is_refuted() -> None:
    """A rejected draft is replaced from p."""
    with pytest.raises(SpeculationRefuted, match="law is target - refuted"):
        check_verifier(partial(verify, residual=False), form="batched", checks=["law_is_target"])
