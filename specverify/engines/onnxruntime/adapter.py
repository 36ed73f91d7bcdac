"""Calls of onnxruntime-genai: one seeded generator per text; models are loaded once per set of end tokens.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting. The
parameter ``way`` is the function ``plain``, ``draft`` or ``ngram``: ``way(decoding)`` returns whether there is a draft
model, and the speculative options.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from specverify.reference import Tokens
from specverify.subjects.decoding import Decoding, Texts, seeds_of

try:
    import onnxruntime_genai as library
except ImportError as error:
    raise ImportError("the ONNX Runtime subject needs onnxruntime-genai: pip install onnxruntime-genai") from error

MODELS = Path(__file__).parent / "models"
VOCABULARY = 5
PLAIN: dict[str, Any] = {}
Way = Callable[[Decoding], tuple[bool, dict[str, Any]]]
"""``way(decoding)`` returns whether there is a draft model, and the speculative options."""


def plain(decoding: Decoding) -> tuple[bool, dict[str, Any]]:
    """Return the settings of decoding without speculation, in the form of ``draft`` and ``ngram``.

    They are False (there is no draft model), and the speculative options that switch speculation off.
    """
    return False, PLAIN


def draft(decoding: Decoding) -> tuple[bool, dict[str, Any]]:
    """Return True (there is a draft model), and the speculative options of ``decoding``."""
    return True, {"max_draft_tokens": decoding.gamma} | _more(decoding, "speculative")


def ngram(decoding: Decoding) -> tuple[bool, dict[str, Any]]:
    """Return False (there is no draft model), and the options of ``decoding`` for drafts copied from previous text."""
    return False, {"max_draft_tokens": decoding.gamma, "ngram_size": 2} | _more(decoding, "speculative")


@cache
def model(drafting: bool, eos: Tokens) -> Any:
    """Return the model with the end tokens ``eos``. With ``drafting``, it includes the draft model."""
    config = json.loads((MODELS / "genai_config.json").read_text("utf-8"))
    config["model"]["eos_token_id"] = list(eos)
    decoder = config["model"]["decoder"]
    decoder["session_options"] |= {"intra_op_num_threads": 1, "inter_op_num_threads": 1}  # they spin while they wait
    if drafting:
        config["model"]["draft"] = decoder | {"filename": "draft.onnx"}
    config["model"]["decoder"] = decoder | {"filename": "target.onnx"}
    with TemporaryDirectory() as folder:
        for name in ("target.onnx", "draft.onnx"):
            shutil.copy(MODELS / name, folder)
        (Path(folder) / "genai_config.json").write_text(json.dumps(config), "utf-8")
        return library.Model(folder)


def generator(way: Way, decoding: Decoding, seed: int) -> Any:
    """Return a generator with ``seed`` that has processed the prompt of ``decoding``; ``way`` gives its options."""
    drafting, speculative = way(decoding)
    loaded = model(drafting, decoding.eos)
    parameters = library.GeneratorParams(loaded)
    options: dict[str, Any] = {
        "do_sample": decoding.temperature > 0,
        "random_seed": seed,
        "max_length": len(decoding.prompt) + decoding.horizon,
        "top_k": decoding.top_k or VOCABULARY,  # 0 is not "off" everywhere
        "top_p": decoding.top_p or 1.0,
        "temperature": decoding.temperature or 1.0,
        "repetition_penalty": decoding.repetition_penalty,
    }
    parameters.set_search_options(**options | _more(decoding, "search"))
    if speculative:
        parameters.set_speculative_options(**speculative)
    made = library.Generator(loaded, parameters)
    made.append_tokens(list(decoding.prompt))
    return made


def continued(made: Any, tokens: int = -1) -> None:
    """Let the generator ``made`` decode ``tokens`` further tokens; it stops earlier at the end of the text.

    With -1 it decodes up to the end of the text.
    """
    while not made.is_done() and tokens != 0:
        made.generate_next_token()
        tokens -= 1


def new_tokens(made: Any, decoding: Decoding) -> Tokens:
    """Return the tokens of the generator ``made`` after the prompt of ``decoding``, without end tokens."""
    return tuple(made.get_sequence(0)[len(decoding.prompt) :].tolist())


def text(way: Way, decoding: Decoding, seed: int) -> Tokens:
    """Return the new tokens of one text of ``decoding`` with ``seed``, decoded with the options of ``way``."""
    made = generator(way, decoding, seed)
    continued(made)
    return new_tokens(made, decoding)


def rewound(way: Way, decoding: Decoding, seed: int) -> Tokens:
    """Return two texts of two tokens each from one generator, concatenated; ``way`` gives its options.

    The generator is rewound to the prompt between the two texts.
    """
    made = generator(way, decoding, seed)
    continued(made, 2)
    first = new_tokens(made, decoding)
    made.rewind_to(len(decoding.prompt) - 1)
    made.append_tokens([decoding.prompt[-1]])
    continued(made, 2)
    return first + new_tokens(made, decoding)


def appended(way: Way, decoding: Decoding, seed: int) -> Tokens:
    """Return the new tokens of a text to which a token is appended in the middle, decoded with ``seed``.

    ``APPENDED`` is fed by ``append_tokens`` after two tokens, and two more tokens are decoded.
    """
    made = generator(way, decoding, seed)
    continued(made, 2)
    made.append_tokens([APPENDED])
    continued(made, 2)
    return new_tokens(made, decoding)


APPENDED = 1


def texts(way: Way, decoding: Decoding, one: Callable[[Way, Decoding, int], Tokens] = text) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts, decoded with the options of ``way``.

    ``one(way, decoding, seed)`` returns the text for one seed.
    """
    return partial(_texts, way, decoding, one)


def _texts(
    way: Way, decoding: Decoding, one: Callable[[Way, Decoding, int], Tokens], seed: int, number: int
) -> Sequence[Tokens]:
    return [one(way, decoding, each) for each in seeds_of(seed, number)]


def _more(decoding: Decoding, kind: str) -> dict[str, Any]:
    result: dict[str, Any] = dict(dict(decoding.more).get(kind, ()))
    return result
