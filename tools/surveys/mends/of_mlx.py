"""The changes that correct each cause in mlx-lm."""

from __future__ import annotations

from typing import Any

from mends.mending import Change, Edit, Ours


def coin_a_row(library: Any) -> Any:
    """Return an XTC sampler that decides for each row by its own number.

    The library's is compiled and cannot be edited.
    """
    import mlx.core as mx

    def apply(logits, probability, threshold, special):
        masses = mx.softmax(logits, -1)
        least = mx.where(masses > threshold, masses, mx.inf).min(axis=-1, keepdims=True)
        excluded = masses > least
        if special:
            excluded[..., special] = False
        coins = mx.random.uniform(shape=(*logits.shape[:-1], 1))
        return mx.where((coins <= probability) & excluded, -mx.inf, logits)

    return apply


OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "XTC decides once for all tokens of a round": (Ours("mlx_lm.sample_utils:apply_xtc", coin_a_row),),
    "penalties forget the prompt": (
        Edit(
            "mlx_lm.generate:speculative_generate_step",
            "    prev_tokens = None\n",
            "    prev_tokens = y[:-1] if y.size > 1 else None\n",
        ),
    ),
}
