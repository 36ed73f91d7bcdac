"""The last part of a script: what it expects, what it gets, and the status it ends with, by kind of fault."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.engines.huggingface.generation import GenerateCall
from specverify.engines.huggingface.script_evidence import (
    CHANGED,
    COMPARED,
    CONTENTS,
    DRAFTED,
    ERROR,
    FED,
    GREEDY,
    HELD,
    IMPOSSIBLE,
    INTERRUPT,
    LAW,
    NOTE,
    NOTED,
    RETURNED,
    RETURNED_IN_SEVERAL,
    SHOW,
    SHOWN,
    UNIFORM,
    WITH_SEEDS,
)
from specverify.engines.huggingface.script_text import indented, texts_code
from specverify.subjects.fault import Fault, NoScript

BROKEN = "after a call that was broken off"

OWNED = {
    "config": '{{f"{owner}.config.{{name}}": value for name, value in {owner}.config.to_dict().items()}}',
    "modules": '{{f"{owner} {{name}}": type(part).__name__ for name, part in {owner}.named_modules()}}',
    "weights": '{{f"{owner} {{name}}": float(part.double().sum()) for name, part in {owner}.state_dict().items()}}',
    "generation_config": """{{
        f"{owner}.generation_config.{{name}}": vars({owner}.generation_config).get(name)
        for name in ["{entry}"]
    }}""",
}
"""What an object of the caller's holds, by the name it has where it is said to have changed."""


RIGHT = {
    "fed": "every forward pass is fed what its cache lacks",
    "held": "before every forward pass the cache is that of the text",
    "shown": "processors are shown what the target has read",
}


def end_code(fault: Fault, greedy: bool, engine: GenerateCall) -> str:
    """Return what stands behind the calls: what is expected and got, and the status."""
    start = len(engine.start)
    if fault.changed:
        return CHANGED
    if fault.error:
        return ERROR.format(start=start, calls=fault.calls, error=fault.error)
    if fault.returned:
        name, part = _entry(fault.returned, engine), "layer" if _of_layers(fault.returned) else "row"
        form = RETURNED_IN_SEVERAL if fault.calls > 1 else RETURNED
        return form.format(start=start, name=name, part=part, calls=fault.calls, compared=COMPARED)
    if fault.cache or fault.drafted:
        return _passes_code(fault, start)
    return GREEDY.format(start=start) if greedy else _sampled_code(fault, start)


def note_code(fault: Fault, engine: GenerateCall, early: bool) -> str:
    """Return what notes every forward pass of the target. ``early`` says that it drafts itself, by fewer layers."""
    layers = engine.target.config.num_hidden_layers
    drafts = f"if model.config.num_hidden_layers != {layers}:\n        return  # it drafts\n    " if early else ""
    ids = "decoder_input_ids" if engine.target.config.is_encoder_decoder else "input_ids"
    noted = NOTE.format(ids=ids, skip=drafts, noted=NOTED[fault.cache].format(start=len(engine.start)))
    return f"{noted}{SHOW}" if fault.cache == "shown" else noted


def _passes_code(fault: Fault, start: int) -> str:
    if fault.drafted:
        rounds, before, draft, p = fault.drafted
        result = {
            "number": len(rounds),
            "at": len(rounds) - 1,
            "place": len(before),
            "offset": len(before) - rounds[-1],
            "draft": draft,
            "p": p,
        }
        apart = abs(fault.got - fault.expected)
        return DRAFTED.format(**result, rounds=[*rounds], before=[*before], apart=apart, start=start, calls=fault.calls)
    compared = {"fed": FED, "held": HELD, "shown": SHOWN}[fault.cache].format(start=start).strip("\n")
    right = f'print("{RIGHT[fault.cache]}")\n'
    if fault.calls == 1:
        return f"text = got[0].tolist()\n{compared}\n{right}"
    return f"{WITH_SEEDS.format(calls=fault.calls)}{indented(compared)}\n{right}"


def _sampled_code(fault: Fault, start: int) -> str:
    result = {"wrong": texts_code(fault.wrong), "got": fault.got, "calls": fault.calls}
    return (LAW if fault.expected else IMPOSSIBLE).format(**result, expected=fault.expected, start=start)


def precise_code(fault: Fault, engine: GenerateCall, names: Sequence[str]) -> str:
    """Return what makes the models compute what is compared in float64."""
    eager = fault.returned == "attentions" and bool(engine.inputs["attention_mask"].all())
    alone = '.set_attn_implementation("eager")  # it alone returns attentions' if eager else ""
    if len(names) == 1:
        return f"{names[0]}.double(){alone}"
    return f"for model in ({', '.join(names)}):\n    model.double(){alone}"


def _entry(returned: str, engine: GenerateCall) -> str:
    inside = _of_layers(returned) and engine.target.config.is_encoder_decoder
    return f"decoder_{returned}" if inside else returned


def _of_layers(returned: str) -> bool:
    return returned not in {"scores", "logits"}


def uniform_code(value: float) -> str:
    """Return what makes every uniform ``value``."""
    if value == 0:
        return UNIFORM.format(value="0.0", said="exactly 0")
    return UNIFORM.format(value="1 - 2**-24", said="the largest float below 1")


def is_broken_off(fault: Fault) -> bool:
    """Return whether only a call that is broken off shows the fault."""
    return bool(fault.changed) and all(name.endswith(BROKEN) for name in fault.changed)


def interrupt_code(engine: GenerateCall) -> str:
    """Return the function that breaks off a pass that drafts: of an assistant, or of the target with fewer layers."""
    layers = f"model.config.num_hidden_layers != {engine.target.config.num_hidden_layers}"
    return INTERRUPT.format(drafts="model is assistant" if len(engine.models) > 1 else layers)


def contents_code(fault: Fault) -> str:
    """Return the function that reads the changed object, and its first result."""
    parts = []
    for name in fault.changed:
        if is_broken_off(fault) or not name.endswith(BROKEN):
            owner, _, what = name.removesuffix(BROKEN).strip().removeprefix("the ").partition("'s ")
            kind, _, entry = what.partition(".")
            if owner not in {"target", "assistant"} or kind not in OWNED:
                raise NoScript(f"a script looks at models alone, and {name} is what is changed")
            parts.append(OWNED[kind].format(owner=owner, entry=entry))
    looked = parts[0] if len(parts) == 1 else "(\n        " + "\n        | ".join(parts) + "\n    )"
    return CONTENTS.format(contents=looked)
