"""The last part of a script, by kind of fault: it compares expected and actual values and sets the exit status.

The parameter ``fault`` of the functions here is the fault that the script shows, and ``engine`` is the call of
``generate`` that the script makes.
"""

from __future__ import annotations

from collections.abc import Sequence

from specverify.engines.huggingface.generation import GenerateCall
from specverify.engines.huggingface.script_text import indented, texts_code
from specverify.subjects.fault import Fault, NoScript

LAW = """
WRONG = {wrong}
EXPECTED, FOUND, CALLS = {expected:.6g}, {got:.6g}, {calls}  # the probability of WRONG, by enumeration

def share(call):
    torch.manual_seed(int(*sys.argv[1:]))
    return sum(tuple(call()[0, {start}:].tolist()) in WRONG for _ in range(CALLS)) / CALLS

without, got = share(plain), share(speculative)
print(f"new tokens {{WRONG}} in {{CALLS}} calls: expected {{EXPECTED:.4f}}, got {{got:.4f}} ({{without:.4f}} plain)")
sys.exit(125 if 2 * without > EXPECTED + FOUND else int(2 * got > EXPECTED + FOUND))  # 125: plain calls are other ones
"""

IMPOSSIBLE = """
WRONG = {wrong}  # without speculation never, with it in {got:.4g} of all calls: both by enumeration
for seed in range(first := int(*sys.argv[1:]), first + {calls}):
    torch.manual_seed(seed)
    if tuple(plain()[0, {start}:].tolist()) in WRONG:
        raise ValueError("without speculation it comes out here too")
    torch.manual_seed(seed)
    new = tuple(speculative()[0, {start}:].tolist())
    if new in WRONG:
        print(f"expected new tokens {{new}} never, got them with seed {{seed}}")
        sys.exit(1)
print("expected and got none of them in {calls} calls")
"""

NOTE = """
passes = []

def note(model, given, named):
    {skip}cache, fed = named.get("past_key_values"), named["{ids}"][0].tolist()
    held = 0 if cache is None else cache.get_seq_length()
    passes.append({noted})

target.register_forward_pre_hook(note, with_kwargs=True)
"""

FED = """
for number, (held, fed) in enumerate(passes, start=1):
    due = text[held : max({start}, held + 1)]
    if fed[: len(due)] != due:
        print(f"forward pass {{number}}, for the text {{text}}, with {{held}} tokens in the cache")
        print(f"expected to be fed {{due}} first, got {{fed}}")
        sys.exit(1)
"""

HELD = """
for number, (held, layers) in enumerate(passes, start=1):
    cache = DynamicCache(config=target.config)
    if held:
        target.forward(torch.tensor([text[:held]]), past_key_values=cache, use_cache=True)
    for layer, (right, found) in enumerate(zip([(kept.keys, kept.values) for kept in cache.layers], layers)):
        for kind, expected, got in zip(("keys", "values"), right, found):
            for place in (~torch.isclose(got, expected, 2**-20, 2**-20)).nonzero().tolist():
                values = f"expected {{expected[tuple(place)]:.4f}}, got {{got[tuple(place)]:.4f}}"
                print(f"forward pass {{number}}, {{kind}} of layer {{layer}} at {{place}}: {{values}}")
                sys.exit(1)
"""

SHOW = "show = lambda ids, scores: (passes and passes[-1][-1].append(ids[0].tolist()), scores)[1]"

SHOWN = """
for number, (held, fed, rows, shown) in enumerate(passes, start=1):
    read = text[:held] + fed
    for row, got in enumerate(shown[:rows]):
        expected = read[: len(read) - rows + row + 1]
        if got != expected:
            print(f"pass {{number}}, row {{row}}: the cache holds {{text[:held]}} and is fed {{fed}}")
            print(f"expected processors to be shown the same, {{expected}}, got {{got}}")
            sys.exit(1)
"""

WITH_SEEDS = """
for seed in range(first := int(*sys.argv[1:]), first + {calls}):
    passes.clear()
    torch.manual_seed(seed)
    text = speculative()[0].tolist()
"""

NOTED = {
    "fed": "(held, fed)",
    "shown": '(held, fed, named.get("logits_to_keep", 1), [])',
    "held": "(held, [(kept.keys.clone(), kept.values.clone()) for kept in cache.layers] if held else [])",
    "": "(max(held + 1 - {start}, 0), fed[max({start} - held, 1) :])",
}
"""``Fault.cache`` -> expression that the script records at each forward pass, such as the cache length and the input.
"""

DRAFTED = """
ROUNDS, BEFORE, DRAFT, CALLS = {rounds}, {before}, {draft}, {calls}
P, APART = {p:.6g}, {apart:.6g}  # by enumeration: p of DRAFT behind BEFORE, and how far it was found from min(P, q)
torch.manual_seed(int(*sys.argv[1:]))
texts = [plain()[0, {start}:].tolist() for _ in range(CALLS)]
behind = [new[{place} : {place} + 1] for new in texts if new[:{place}] == BEFORE]
p, reached = behind.count([DRAFT]) / len(behind), []
for _ in range(CALLS):
    passes.clear()
    new = speculative()[0, {start}:].tolist()
    begins, drafts = zip(*passes)
    here = list(begins[:{number}]) == ROUNDS and new[:{place}] == BEFORE and len(new) > {place}
    if here and len(drafts[{at}]) > {offset}:
        reached.append((drafts[{at}][{offset}], new[{place}]))
q = [draft for draft, _ in reached].count(DRAFT) / len(reached)
got = reached.count((DRAFT, DRAFT)) / len(reached)
print(f"draft {{DRAFT}} behind {{BEFORE}}, of {{len(reached)}} drafts: p = {{P:.4f}} ({{p:.4f}} here), q = {{q:.4f}}")
print(f"expected to be emitted with probability {{min(P, q):.4f}}, which is min(p, q), got {{got:.4f}}")
sys.exit(125 if abs(p - P) > APART / 2 else 1 if abs(got - min(P, q)) > APART / 2 else 0)
"""

GREEDY = """
expected, got = expected[0, {start}:].tolist(), got[0, {start}:].tolist()
print(f"expected new tokens {{expected}}, got {{got}}")
sys.exit(1 if got != expected else 0)
"""

UNIFORM = """
torch.rand_like = lambda like, **options: torch.full_like(like, {value}, **options)
# every uniform is {said}; a uniform of 24 bits is so once in 2**24 draws
"""

RETURNED = """
for position, entries in enumerate(zip(expected["{name}"], got["{name}"])):
    if expected.sequences[0, : {start} + position].tolist() != got.sequences[0, : {start} + position].tolist():
        break  # what is returned from here on belongs to other tokens
    for {part}, (right, found) in enumerate(zip(*entries)):
        where = f"{name} of new token {{position}}, {part} {{{part}}}, counted from 0"
{compared}
print("{name} are the same as without speculation")
"""

RETURNED_IN_SEVERAL = '''
def returned(call):
    """Return the new tokens before each position -> what is returned there."""
    found = call()
    new = tuple(found.sequences[0, {start}:].tolist())
    return {{new[:position]: entry for position, entry in enumerate(found["{name}"])}}

torch.manual_seed(int(*sys.argv[1:]))
expected = {{new: entry for _ in range({calls}) for new, entry in returned(plain).items()}}
for got in (returned(speculative) for _ in range({calls})):
    for new, {part}, right, found in [
        (new, *pair) for new in got if new in expected for pair in zip(range(99), expected[new], got[new])
    ]:
        where = f"{name} behind new tokens {{new}}, {part} {{{part}}}, counted from 0"
{compared}
print("{name} are the same as without speculation")
'''

COMPARED = """
        if right.shape != found.shape:
            print(f"{where}: expected shape {tuple(right.shape)}, got {tuple(found.shape)}")
            sys.exit(1)
        for place in (~torch.isclose(found, right, 2**-20, 2**-20)).nonzero().tolist():
            values = f"expected {right[tuple(place)]:.4f}, got {found[tuple(place)]:.4f}"
            print(f"{where}: {values} at {place}")
            sys.exit(1)
""".strip("\n")

ERROR = """
expected = plain()[0, {start}:].tolist()
for seed in range(first := int(*sys.argv[1:]), first + {calls}):
    torch.manual_seed(seed)
    try:
        speculative()
    except {error} as error:
        print(f"expected new tokens, as {{expected}} without speculation, got {error}: {{error}}")
        sys.exit(1)
print("expected and got new tokens, with {calls} seeds")
"""

CONTENTS = """
def contents():
    return {contents}

before = contents()
"""
CHANGED = """
after = contents()
changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
for name in changed:
    print(f"{name}: expected {before.get(name)}, got {after.get(name)}")
sys.exit(1 if changed else 0)
"""

INTERRUPT = """
def interrupt(model, *_):
    if {drafts}:  # it drafts
        raise KeyboardInterrupt
"""


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
"""Kind of a changed object -> code that reads its content."""


RIGHT = {
    "fed": "every forward pass is fed what its cache lacks",
    "held": "before every forward pass the cache is that of the text",
    "shown": "processors get the tokens that the target has read",
}


def end_code(fault: Fault, greedy: bool, engine: GenerateCall) -> str:
    """Return the last code of a script, which compares the expected and the actual value and sets the exit status.

    ``fault`` is what the script shows about the call ``engine``. ``greedy`` states whether the calls are greedy, so
    that two texts are compared instead of two laws.
    """
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
    """Return the code of a hook for the script that records, at every forward pass of the target, the data to compare.

    ``fault`` determines these data, and ``engine`` is the call of the script. ``early`` states that the target also
    drafts, with fewer layers; its drafting passes are not recorded.
    """
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
    """Return the code that converts models to float64, so that rounding does not hide the compared difference.

    ``engine`` is the call of the script, ``names`` are the variables of the models in the script. If ``fault`` is in
    the attentions, the models also get eager attention.
    """
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
    """Return the code that sets every uniform to 0 if ``value`` is 0, and else to the largest float below 1."""
    if value == 0:
        return UNIFORM.format(value="0.0", said="exactly 0")
    return UNIFORM.format(value="1 - 2**-24", said="the largest float below 1")


def is_broken_off(fault: Fault) -> bool:
    """Return whether ``fault`` is that an interrupted call changes the caller's objects."""
    return bool(fault.changed) and all(name.endswith(BROKEN) for name in fault.changed)


def interrupt_code(engine: GenerateCall) -> str:
    """Return the code of a function that interrupts a drafting pass of the script's call.

    ``engine`` is this call. The drafting pass is a pass of the assistant. If the call has no assistant, it is a pass of
    the target with fewer layers.
    """
    layers = f"model.config.num_hidden_layers != {engine.target.config.num_hidden_layers}"
    return INTERRUPT.format(drafts="model is assistant" if len(engine.models) > 1 else layers)


def contents_code(fault: Fault) -> str:
    """Return code that defines a function ``contents()`` and calls it before ``generate``.

    ``contents()`` reads the objects that ``fault`` reports as changed. Raises ``NoScript`` if one of these objects is
    no part of a model.
    """
    parts = []
    for name in fault.changed:
        if is_broken_off(fault) or not name.endswith(BROKEN):
            owner, _, what = name.removesuffix(BROKEN).strip().removeprefix("the ").partition("'s ")
            kind, _, entry = what.partition(".")
            if owner not in {"target", "assistant"} or kind not in OWNED:
                raise NoScript(f"a script can compare models only, and the call changed {name}")
            parts.append(OWNED[kind].format(owner=owner, entry=entry))
    looked = parts[0] if len(parts) == 1 else "(\n        " + "\n        | ".join(parts) + "\n    )"
    return CONTENTS.format(contents=looked)
