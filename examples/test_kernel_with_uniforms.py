"""A kernel in the manner of CUDA, one row a thread: its uniforms are arguments, so its law is exact."""

from functools import partial

import numpy as np
import pytest

from specverify.testing import SpeculationRefuted, check_kernel, parametrize_with_checks


def verify(p, q, draft_tokens, accept_uniforms, final_uniform, *, residual: bool = True):
    """Decide rows ``[rows, gamma + 1]``, padded with -1."""
    rows, gamma = draft_tokens.shape
    out = np.full((rows, gamma + 1), -1)
    for row in range(rows):  # a thread each
        accepted = 0
        while accepted < gamma:
            token = draft_tokens[row, accepted]
            if accept_uniforms[row, accepted] * q[row, accepted, token] >= p[row, accepted, token]:
                break
            out[row, accepted] = token
            accepted += 1
        weights = p[row, accepted].astype(np.float64)
        if accepted < gamma and residual:
            excess = np.maximum(p[row, accepted] - q[row, accepted], 0).astype(np.float64)
            weights = excess if excess.any() else weights
        sums = weights.cumsum()
        last = int(np.searchsorted(sums, final_uniform[row] * sums[-1], side="right"))
        out[row, accepted] = min(last, int(np.flatnonzero(weights)[-1]))
    return out


SMALL = dict(vocabularies=(129,), rows=2**11, gammas=(2,))


@parametrize_with_checks([partial(check_kernel, verify, **SMALL)])
def test_the_kernel(check) -> None:
    """Run one check."""
    check()


def test_the_bug_is_refuted() -> None:
    """A rejected draft is replaced from p."""
    with pytest.raises(SpeculationRefuted, match="law is target - refuted"):
        check_kernel(partial(verify, residual=False), **SMALL, checks=["law_is_target"])
