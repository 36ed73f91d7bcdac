"""Known bugs of transformers: for each the line in the installed source, and the faults that it causes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import transformers

from specverify.subjects.fault import Fault


class Cause(NamedTuple):
    """A line of transformers with a bug, and patterns of the settings and kinds of faults that this bug explains.

    The line is in the module ``transformers.MODULE``, where MODULE is the field ``module``.
    """

    settings: str
    """Patterns of setting names, separated by spaces; one must match."""
    kinds: str
    """Kinds of faults, as ``kind_of`` returns them, separated by spaces; "" matches all."""
    module: str
    line: str
    """The line without its indentation."""


CAUSES: tuple[Cause, ...] = (
    Cause("*", "boundary", "generation.utils", "is_accepted = r_i <= probability_ratio"),
    Cause(
        "*",
        "hidden_states attentions",
        "generation.utils",
        "new_tuple += (layer[..., :cur_len, :last_dim_size],)",
    ),
    Cause(
        "*/cache-passed-in",
        "",
        "generation.utils",
        "next_sequence_length = candidate_length + 1 if not is_first_iteration else None",
    ),
    Cause(
        "*/guidance */negative-prompt",
        "text",
        "generation.logits_process",
        'self.unconditional_context["past_key_values"] = out.get("past_key_values", None)',
    ),
    Cause(
        "*/stop-strings */ends-and-strings */last-token-criterion",
        "text",
        "generation.utils",
        "unfinished_sequences = unfinished_sequences & ~stopping_criteria(input_ids, scores)",
    ),
    Cause(
        "*/counting-processor",
        "text drafted",
        "generation.utils",
        "new_logits[:, i, :] = logits_processor(candidate_input_ids[:, : cur_len + i], new_logits[:, i, :])",
    ),
    Cause(
        "gemma4-assistant/*",
        "text drafted",
        "generation.candidate_generator",
        "last_token_id = outputs.logits.argmax(dim=-1)",
    ),
    Cause(
        "universal/*", "text", "generation.candidate_generator", "list(self.target_to_assistant_input_ids.values()),"
    ),
    Cause(
        "universal/*",
        "changed",
        "generation.candidate_generator",
        "assistant_model.set_output_embeddings(pruned_lm_head)",
    ),
    Cause(
        "early-exit/*",
        "changed",
        "generation.candidate_generator",
        "base_model.config.num_hidden_layers = self.assistant_early_exit",
    ),
    Cause(
        "early-exit/after-a-broken-call",
        "text",
        "generation.candidate_generator",
        "base_model.config.num_hidden_layers = self.assistant_early_exit",
    ),
    Cause(
        "whisper/*",
        "changed",
        "models.whisper.generation_whisper",
        "assistant_model.generation_config.force_unique_generate_call = True",
    ),
    Cause(
        "whisper/suppressed-at-first",
        "text",
        "models.whisper.generation_whisper",
        "generation_config.begin_suppress_tokens = None",
    ),
)
"""Known causes of faults in transformers 5.23.0, found by hand; the first one that matches a fault is reported, if its
line still exists."""


def cause_of(setting: str, fault: Fault) -> str:
    """Return the line of the library that causes ``fault`` in the setting called ``setting``: file, number and text.

    Returns "" if the cause is not known.
    """
    root = Path(transformers.__file__).parent
    for file, number, text in reversed(fault.frames):
        if Path(file).is_relative_to(root):
            return f"{Path(file).relative_to(root.parent).as_posix()}:{number}: {text}"
    kind = kind_of(fault)
    for cause in CAUSES:
        fits = any(fnmatch(setting, pattern) for pattern in cause.settings.split())
        if fits and (not cause.kinds or kind in cause.kinds.split()):
            module = import_module(f"transformers.{cause.module}")
            result = _number(inspect.getsource(module).splitlines(), cause.line)
            return f"{module.__name__.replace('.', '/')}.py:{result}: {cause.line}" if result else ""
    return ""


def kind_of(fault: Fault) -> str:
    """Return the kind of a fault as one word.

    The words are "boundary" (a uniform at the end of its range), "error", "changed" (an object of the caller), "cache",
    "drafted" (the drafts), "text", or the name of a returned value, such as "scores".
    """
    if fault.uniform is not None:
        return "boundary"
    if fault.returned or fault.error:
        return fault.returned or "error"
    return "changed" if fault.changed else "cache" if fault.cache else "drafted" if fault.drafted else "text"


def _number(source: Sequence[str], line: str) -> int:
    return next((number for number, text in enumerate(source, start=1) if text.strip() == line), 0)
