"""Options of ``generate`` that the examined settings use: ``python -m specverify.engines.huggingface.coverage``.

Options are read from the signature of ``generate`` and the fields of a ``GenerationConfig``. The options of a setting
are read from its recorded call. So a new option of the library appears as not covered.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from transformers import GenerationConfig, GenerationMixin

from specverify.engines.huggingface.generation import GenerateCall, quiet_and_seeded
from specverify.engines.huggingface.rows import rows

SHOWN = 4
"""The number of settings that are named per option; further ones are counted."""
NOT_COVERED = "not covered"
_ONLY_STATIC = "no effect on speculation: only static caches read it, and speculation rejects them"
_MOVED = "no effect: the decoding method that it selects was removed from the library"
_BEAMS = "no effect on speculation: only beam search reads it, and beam search ignores the assistant"
_SHOWN = "set by the check *scores match* itself, in every row whose forward passes are recorded"
REASONS: dict[str, str] = {
    "inputs": "another name of `input_ids`, which the rows pass",
    "negative_prompt_attention_mask": "not covered: the negative prompts of the rows have no padding",
    "max_length": "computed by the library from `max_new_tokens`, which the rows pass",
    "forced_bos_token_id": "not covered: it forces only the token after a prompt, or decoder prompt, of one token",
    "bos_token_id": "used only if a call has no prompt; every row has one",
    "synced_gpus": "cannot run here: needs a process group of several devices",
    "watermarking_config": "not covered by a row: a test alone examines it, as an engine of two calls",
    "custom_generate": "a callable replaces the loop and does not receive the assistant; a string names foreign code",
    "compile_config": _ONLY_STATIC,
    "disable_compile": _ONLY_STATIC,
    "max_cache_len": _ONLY_STATIC,
    "early_stopping": _BEAMS,
    "length_penalty": _BEAMS,
    "penalty_alpha": _MOVED,
    "dola_layers": _MOVED,
    "diversity_penalty": _MOVED,
    "num_beam_groups": _MOVED,
    "constraints": _MOVED,
    "force_words_ids": _MOVED,
    "low_memory": _MOVED,
    "continuous_batching_config": "no effect on speculation: continuous batching rejects an assistant",
    "is_assistant": "not for callers: the library sets it in the assistant's own calls",
    "transformers_version": "no effect on speculation: it names the version that wrote a file",
    "output_scores": _SHOWN,
    "output_logits": _SHOWN,
    "output_attentions": _SHOWN,
    "output_hidden_states": _SHOWN,
    "return_dict_in_generate": _SHOWN,
}
"""Option -> reason why no examined setting uses it."""


def options() -> tuple[str, ...]:
    """Return the names of all arguments of ``generate``, and of all public fields of a ``GenerationConfig``."""
    arguments = [
        name for name in inspect.signature(GenerationMixin.generate).parameters if name not in {"self", "kwargs"}
    ]
    config: Any = GenerationConfig
    fields = [name for name in vars(config()) if not name.startswith("_")]
    return tuple(dict.fromkeys((*arguments, *fields)))


def page(found: Mapping[str, Iterable[str]], names: Iterable[str]) -> str:
    """Return a Markdown page with a row for each option in ``names``.

    ``found`` maps an option to the settings that use it.
    """
    lines = [
        "# transformers 5.23.0: options of generate and the rows that use them",
        "",
        "For each option of `generate`, this page names the rows of",
        "[the table](transformers-5.23.0-table.md) that use it, or states why none does. Options are read from the",
        "signature of `generate` and the fields of `GenerationConfig`; the options of a row are read from its recorded",
        "call. Written by `python -m specverify.engines.huggingface.coverage FILE`.",
        "",
        "| option | rows |",
        "|---|---|",
        *(f"| `{name}` | {_said(name, tuple(found.get(name, ())))} |" for name in names),
    ]
    return "\n".join(lines) + "\n"


def uses() -> dict[str, list[str]]:
    """Return option -> names of the settings that use it.

    A setting uses an option if its call passes it, or if the generation config of one of its models sets it.
    """
    result: dict[str, list[str]] = {}
    with quiet_and_seeded(0):
        for name, row in rows().items():
            for option in used_by(row.build(row.setting)):
                result.setdefault(option, []).append(name)
    return result


def used_by(engine: GenerateCall) -> set[str]:
    """Return the options that a speculative call of ``engine`` passes, or that its models' generation configs set.

    The arguments of ``generate`` are recorded; ``generate`` itself is not executed.
    """
    passed: set[str] = set()

    def record(*_: Any, generation_config: Any = None, **named: Any) -> Any:
        passed.update(name for name, value in named.items() if value is not None)
        passed.update(_set_in(generation_config))
        if generation_config is not None:
            passed.add("generation_config")
        raise _Recorded

    engine.now.target.generate = record
    with suppress(_Recorded):
        engine.generate()
    configs = (getattr(model, "generation_config", None) for model in engine.now.models)
    return passed.union(*(_set_in(config) for config in configs))


class _Recorded(Exception):  # noqa: N818 - ends a call that was only to be looked at
    pass


def _set_in(config: Any) -> set[str]:
    return set() if config is None else {name for name, value in vars(config).items() if value is not None}


def _said(name: str, used: tuple[str, ...]) -> str:
    if not used:
        return REASONS.get(name, NOT_COVERED)
    more = f" and {len(used) - SHOWN} more" if len(used) > SHOWN else ""
    return ", ".join(f"`{row}`" for row in used[:SHOWN]) + more


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:  # noqa: PTH123 - a path as typed
        file.write(page(uses(), options()))
