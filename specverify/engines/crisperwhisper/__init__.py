"""``Whisper.generate_speculative`` of ctranslate2-crisperwhisper, greedy, on tiny Whisper models."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(
    __name__,
    name="CrisperWhisper's CTranslate2",
    requirement="ctranslate2-crisperwhisper",
    call="Whisper.generate_speculative",
)
