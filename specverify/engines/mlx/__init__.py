"""generate_step and speculative_generate_step of mlx-lm on the CPU, on tiny Llamas."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(__name__, name="MLX", requirement="mlx-lm", call="mlx-lm")
