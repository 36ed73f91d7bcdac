"""Llama.generate of llama-cpp-python on a tiny Llama, with the library's own drafter and with scripted drafts."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(__name__, name="llama.cpp", requirement="llama-cpp-python", call="llama-cpp-python")
