"""What scripts are made of: the parts that are the same in all of them, and how data is written as code."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

WIDTH = 110

FILL = '''
def fill(model, seed, scale, ends={ends}):
    """Overwrite every weight: matrices are normal, a vector is what the end of its name says."""
    generator = torch.Generator().manual_seed(seed)
    for name, weights in sorted(model.named_parameters()):
        if weights.ndim > 1:
            weights.data.normal_(0, scale, generator=generator)
        else:
            weights.data.fill_(next(value for end, value in ends if name.endswith(end)))
    return model.eval()
'''

STORED = '''
def stored(model, text):
    """Give the model the weights in ``text``."""
    model.load_state_dict(torch.load(io.BytesIO(zlib.decompress(base64.b64decode(text)))))
    return model.eval()
'''

REUSE = '''
@contextmanager
def all_layers_reuse():
    """transformers {version} builds no such assistant: its config demands what its layers refuse."""
    asked = Gemma4TextConfig.kv_sharing_modes
    Gemma4TextConfig.kv_sharing_modes = property(lambda config: ["reuse"] * config.num_hidden_layers)
    yield
    Gemma4TextConfig.kv_sharing_modes = asked
'''

BREAK = '''
class BrokenOff(Exception):
    pass


def interrupt(model, *_):
    """Break a call off in the first forward pass that drafts."""
    if model is not target or model.config.num_hidden_layers != {layers}:
        raise BrokenOff


def broken_off():
    hooks = [model.register_forward_pre_hook(interrupt) for model in ({models})]
    try:
        earlier()
    except BrokenOff:
        pass
    for hook in hooks:
        hook.remove()
'''

LAW = '''
WRONG = {wrong}
EXPECTED, FOUND = {expected!r}, {got!r}
"""The probability that the new tokens are one of WRONG, by enumeration: without speculation, and with it."""
CALLS = {calls}


def share(call):
    torch.manual_seed(0)
    return sum(tuple(call()[0, {start}:].tolist()) in WRONG for _ in range(CALLS)) / CALLS


without, got = share(plain), share(speculative)
print(f"new tokens {{' or '.join(map(str, WRONG))}}")
print(f"without speculation: {{EXPECTED:.4f}} by enumeration, {{without:.4f}} in {{CALLS}} calls")
print(f"with speculation:    {{FOUND:.4f}} by enumeration, {{got:.4f}} in {{CALLS}} calls")
print(f"expected {{EXPECTED:.4f}}, got {{got:.4f}} in {{CALLS}} calls")
if without - EXPECTED > (FOUND - EXPECTED) / 2:
    print("the call without speculation is another one here: nothing can be said")
    sys.exit(125)
sys.exit(1 if got > (EXPECTED + FOUND) / 2 else 0)
'''

GREEDY = """
expected, got = (call()[0, {start}:].tolist() for call in (plain, speculative))
print(f"expected new tokens {{expected}}, got {{got}}")
sys.exit(1 if got != expected else 0)
"""

UNIFORM = """
torch.rand_like = lambda like, **options: torch.full_like(like, {value}, **options)
# every uniform is {said}; a uniform of 24 bits is so once in {often} draws
"""

RETURNED = '''
CALLS = {calls}
for model in ({models}):
    {precision}


def entries(found):
    """Return the new tokens and, for each, what is returned beside it, its layers one after the other."""
    listed = [entry if isinstance(entry, tuple) else (entry,) for entry in found["{name}"]]
    shapes = [[tuple(layer.shape) for layer in entry] for entry in listed]
    values = [torch.cat([layer.flatten() for layer in entry]) for entry in listed]
    return found.sequences[0, {start}:].tolist(), list(zip(shapes, values))


torch.manual_seed(0)
expected = {{}}  # the new tokens before a position -> what a plain call returns there
for _ in range(CALLS):
    new, returned = entries(plain())
    expected |= {{tuple(new[:position]): entry for position, entry in enumerate(returned)}}
for _ in range(CALLS):
    new, returned = entries(speculative())
    if len(new) != len(returned):
        print(f"expected {{len(new)}} entries of {name} for new tokens {{new}}, got {{len(returned)}}")
        sys.exit(1)
    for position, (shapes, values) in enumerate(returned):
        if tuple(new[:position]) not in expected:
            continue
        plain_shapes, plain_values = expected[tuple(new[:position])]
        print(f"new tokens {{new}}: {name} of new token {{position}}, counted from 0")
        if shapes != plain_shapes:
            print(f"expected shapes {{plain_shapes}}, got {{shapes}}")
            sys.exit(1)
        off = torch.where(values == plain_values, 0.0, values - plain_values).abs()
        if off.max() > 2.0**-20 * max(1.0, plain_values[plain_values.isfinite()].abs().max()):
            first = int((off > off.max() / 2).nonzero()[0])
            place = f"as value {{first}} of {{len(values)}}"
            print(f"expected {{plain_values[first]:.4f}}, got {{values[first]:.4f}} {{place}}")
            sys.exit(1)
        print("the same as without speculation")
sys.exit(0)
'''


UNTESTED = """
untested = "cannot be tested: {}: {}"  # whatever else goes wrong is not taken for the fault
sys.excepthook = lambda kind, error, _: (print(untested.format(kind.__name__, error), flush=True), os._exit(125))
""".strip()
ERROR = """
expected = plain()[0, {start}:].tolist()
for seed in range({calls}):
    torch.manual_seed(seed)
    try:
        speculative()
    except {error} as error:
        sys.exit(print(f"expected new tokens, as {{expected}} without speculation, got {error}: {{error}}") or 1)
print("expected and got new tokens, with {calls} seeds")
"""
CHANGED = '''
def contents():
    """Return what the models hold: settings, kinds of modules, sums of weights."""
    found = {{}}
    for owner, model in zip({names}, ({models})):
        for name in ("config", "generation_config"):
            settings = getattr(model, name, None)
            entries = settings.to_dict() if settings else {{}}
            found |= {{(owner, name, key): repr(value) for key, value in entries.items()}}
        found |= {{(owner, "module", name): type(part) for name, part in model.named_modules()}}
        found |= {{(owner, "weights", name): float(part.double().sum()) for name, part in model.state_dict().items()}}
    return found


def watched(real=target.generate, **given):
    before = contents()
    real(**given)
    after = contents()
    changed = [key for key in {{**before, **after}} if before.get(key) != after.get(key)]
    for key in changed[:9]:
        print(f"{{'.'.join(key)}}: expected {{before.get(key)}}, got {{after.get(key)}}")
    sys.exit(1 if changed else 0)


target.generate = watched
speculative()
'''


class Written(NamedTuple):
    """What the calls need, as code."""

    imports: set[str]
    """Names from transformers."""
    modules: set[str]
    before: list[str]
    """Functions and objects that come before the calls."""
    names: dict[int, str]
    """Object, by its identity -> the name it has in the script."""
    configs: dict[str, str]
    """The config of a model, as code -> the name of the model."""


def call_code(name: str, arguments: Mapping[str, str]) -> str:
    """Return a call; one argument a line where it is long. Arguments without a name come first."""
    written = [value if not key.strip() else f"{key}={value}" for key, value in arguments.items()]
    line = f"{name}({', '.join(written)})"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    if len(written) == 1:
        return f"{name}({written[0]})"
    return f"{name}(\n" + textwrap.indent(",\n".join(_packed(written)), "    ") + ",\n)"


def _packed(items: Iterable[str]) -> Iterator[str]:
    """Yield lines that hold as many of the items as they may; one that has lines of its own stands alone."""
    line = ""
    for item in items:
        if line and ("\n" in line + item or len(line) + len(item) + 2 > WIDTH - 4):
            yield line
            line = ""
        line += f", {item}" if line else item
    if line:
        yield line


def code(value: Any) -> str:
    """Return plain data as code."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        items = ", ".join(map(code, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{code(key)}: {code(item)}" for key, item in value.items()) + "}"
    return repr(value)


def once(listed: list[str], item: str) -> None:
    """Add a piece unless it is there."""
    if item not in listed:
        listed.append(item)
