"""The C++ server of llama.cpp over HTTP: slots, caches, its chain of samplers and every way in which it drafts."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(__name__, name="llama.cpp's server", requirement="xllamacpp", call="POST /completion")
