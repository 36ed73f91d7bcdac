"""The C++ server of llama.cpp over HTTP: its slots, caches, samplers, and every kind of drafting."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(__name__, name="llama.cpp's server", requirement="xllamacpp", call="POST /completion")
