"""``Generator`` of onnxruntime-genai on tiny Llamas, with a draft model and with drafts copied from the text."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(
    __name__, name="onnxruntime-genai", requirement="onnxruntime-genai", call="Generator of onnxruntime-genai"
)
