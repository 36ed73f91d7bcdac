"""A subject in torch whose certificate the tests replay."""

from __future__ import annotations

import torch


def of_torch(p, q, draft_tokens):
    """A rejection sampler in torch that draws the replacement by a race."""
    assert isinstance(p, torch.Tensor)
    for i, token in enumerate(draft_tokens.tolist()):
        if torch.rand(()) >= p[i, token] / q[i, token]:
            rest = torch.clamp(p[i] - q[i], min=0)
            return [*draft_tokens[:i].tolist(), int((rest / torch.empty_like(rest).exponential_()).argmax())]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]
