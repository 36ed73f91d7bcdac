"""LLMPipeline of openvino-genai on tiny Llamas, with a draft model and with prompt lookup."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(__name__, name="OpenVINO GenAI", requirement="openvino-genai", call="openvino-genai")
