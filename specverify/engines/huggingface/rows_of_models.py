"""Rows whose models differ: what hears and sees, pairs that are not of one kind, two tokenizers, objects used again."""

from __future__ import annotations

from specverify.engines.huggingface import model_pairs as pairs
from specverify.engines.huggingface import special
from specverify.engines.huggingface.modalities import llava_engine, qwen2_vl_engine, whisper_engine
from specverify.engines.huggingface.model_pairs import universal_pair_engine, unlike_engine
from specverify.engines.huggingface.row import OBJECTS, SMALL, TableRow
from specverify.engines.huggingface.situations import broken_off_before, used_before

_HEARD = SMALL._replace(prompt=(0,))
_GREEDY = _HEARD._replace(sample=False)
_SEEN = SMALL._replace(
    vocabulary=4, prompt=(3, 3, 3, 3, 0, 1, 2, 0, 1), horizon=2, options=(("suppress_tokens", (3,)),)
)
"""An image first, whose token is never drawn."""
_AGAIN = SMALL._replace(vocabulary=4, prompt=(0, 1, 3, 3, 3, 3, 0, 1), horizon=2)
"""What stood before the image is said again behind it, and its token is not forbidden."""
_TWO = SMALL._replace(vocabulary=5, horizon=2)
_OWN = (("repetition_penalty", 1.7), ("suppress_tokens", (1,)))
_LONG = _TWO._replace(sample=False, horizon=8, assistant=(("assistant_lookbehind", 1), ("target_lookbehind", 1)))
DECODER = "WhisperForCausalLM"

OF_MODELS: dict[str, TableRow] = {
    "assisted/smaller": TableRow(unlike_engine("smaller"), SMALL),
    "assisted/by-gpt2": TableRow(unlike_engine("gpt2"), SMALL),
    "assisted/own-processors": TableRow(unlike_engine("llama"), SMALL._replace(assistant=_OWN)),
    "assisted/by-t5": TableRow(unlike_engine("t5"), SMALL, tells=OBJECTS),
    "assisted/t5-by-bart": TableRow(unlike_engine("bart"), SMALL._replace(architecture="t5"), tells=OBJECTS),
    "assisted/t5-by-llama": TableRow(
        unlike_engine("llama"), SMALL._replace(architecture="t5"), "not used by the model", tells=OBJECTS
    ),
    "whisper/assisted": TableRow(whisper_engine(), _HEARD, tells=OBJECTS),
    "whisper/greedy": TableRow(whisper_engine(), _GREEDY, tells=OBJECTS),
    "whisper/by-a-decoder": TableRow(whisper_engine(DECODER), _HEARD, tells=OBJECTS),
    "whisper/by-a-decoder-greedy": TableRow(whisper_engine(DECODER), _GREEDY, tells=OBJECTS),
    "whisper/prompt-lookup": TableRow(whisper_engine(None), _HEARD, tells=OBJECTS),
    "whisper/suppressed-at-first": TableRow(
        whisper_engine(DECODER), _GREEDY._replace(options=(("begin_suppress_tokens", (1,)),)), tells=OBJECTS
    ),
    "llava/assisted": TableRow(llava_engine("llava"), _SEEN, tells=OBJECTS),
    "llava/by-llama": TableRow(llava_engine("llama"), _SEEN, tells=OBJECTS),
    "llava/prompt-lookup": TableRow(llava_engine(None), _SEEN, tells=OBJECTS),
    "llava/image-token-drafted": TableRow(llava_engine(None), _AGAIN, tells=OBJECTS),
    "qwen2-vl/assisted": TableRow(qwen2_vl_engine("qwen2-vl"), _SEEN, tells=OBJECTS),
    "qwen2-vl/prompt-lookup": TableRow(qwen2_vl_engine(None), _SEEN, tells=OBJECTS),
    "qwen2-vl/image-token-drafted": TableRow(qwen2_vl_engine("qwen2-vl"), _AGAIN, tells=OBJECTS),
    "universal/look-behind": TableRow(universal_pair_engine(), _LONG, tells=OBJECTS),
    "universal/t5": TableRow(universal_pair_engine(architecture="t5"), _TWO, tells=OBJECTS),
    "universal/after-a-call": TableRow(universal_pair_engine(before=pairs.used_once), _TWO, tells=OBJECTS),
    "universal/after-a-broken-call": TableRow(universal_pair_engine(before=pairs.broken_once), _TWO, tells=OBJECTS),
    "mtp/after-a-call": TableRow(used_before(special.mtp_engine(1)), SMALL._replace(horizon=2), tells=OBJECTS),
    "dflash/after-a-call": TableRow(used_before(special.dflash_engine), SMALL),
    "dflash/after-a-broken-call": TableRow(broken_off_before(special.dflash_engine), SMALL),
    "gemma4-assistant/after-a-call": TableRow(used_before(special.gemma4_engine), SMALL._replace(sample=False)),
}
"""The prompt of what hears is a sound, of what sees an image and text."""
