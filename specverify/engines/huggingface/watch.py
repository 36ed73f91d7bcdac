"""transformers' ``generate``, observed while it runs.

Four things are recorded: the cache before every forward pass of the target, the ids that the logits processors get,
other returned values, and changed objects. The models compute in float64, even where their code requests float32
(norms, rotary angles, the softmax of eager attention). In float32, some CPUs round a row differently if it is in a
batch, and the recorded caches would differ by 4e-7. In float64, a wrong entry differs by ten orders of magnitude more
than rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from specverify.engines.huggingface.generation import GenerateCall, layers_of, quiet_and_seeded
from specverify.engines.huggingface.objects import changed_between, changed_by_use, contents, ready
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.torch.calls import outcome_of
from specverify.intercept.torch.tensors import look_at
from specverify.reference import Draws, Tokens
from specverify.subjects.observer import ReadPass
from specverify.subjects.subject import Forward, Observed, Watched

ALSO_RETURNED = ("scores", "logits", "hidden_states", "attentions")
"""Fields of the result of ``generate`` with one entry per new token; the last two may be called ``decoder_*``."""
_ASKED = {
    "return_dict_in_generate": True,
    "output_scores": True,
    "output_logits": True,
    "output_hidden_states": True,
    "output_attentions": True,
}


@contextmanager
def watched_call(build: Callable[[], GenerateCall]) -> Iterator[Watched]:
    """Build the models in float64, and yield the call as an engine whose runs are recorded.

    ``build`` returns the call. The yielded ``Watched`` runs it with given draws and returns what was observed.
    """
    with quiet_and_seeded(0):
        use, engine = changed_by_use(build()), build()
    hidden = "attention_mask" in engine.inputs and not engine.inputs["attention_mask"].all()
    for model in engine.models:
        model.double()
        model.forward = in_float64(model.forward)
        if not hidden:  # eager attention alone returns its weights, and has none to return for a row that sees nothing
            model.set_attn_implementation("eager")
    read = pass_of(engine.target)
    forwards: list[Forward] = []
    rows: list[list[Tokens]] = []

    def before_forward(_: Any, positional: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        result = read(positional, named)
        if result is not None:
            forwards.append(result)
            rows.append([])

    class Shown:
        """A logits processor that records its input; a class, because the library inspects functions slowly."""

        def __call__(self, ids: Any, scores: Any) -> Any:
            if rows:
                rows[-1].append(tuple(look_at(ids)[0].tolist()))
            return scores

    def run(draws: Draws, speculative: bool = True) -> Observed:
        engine.restore()
        if speculative:
            engine.before()
        forwards.clear()
        rows.clear()
        with answered_everywhere(draws):
            result = engine.generate(speculative, logits_processor=[Shown()], **asked)
            new = outcome_of(result.sequences[0, len(engine.start) :])
        changed = changed_between(built, contents(engine))
        if speculative:
            changed = tuple(dict.fromkeys((*changed, *use)))
        return Observed(new, tuple(forwards), tuple(map(tuple, rows)), _returned(result), changed)

    with ready(engine.models):
        asked = _asked(engine, attentions=not hidden)
        engine.restore()
        built = contents(engine)
        hook = engine.target.register_forward_pre_hook(before_forward, with_kwargs=True)
        try:
            yield Watched(run, partial(run, speculative=False), engine.start)
        finally:
            hook.remove()


def pass_of(target: Any) -> ReadPass:
    """Return a function that reads one forward pass of ``target``: its input, and the contents of the cache before it.

    The function gets the positional and the named arguments of the pass. It returns None for a pass that drafts with
    fewer layers (early exit).
    """
    layers = layers_of(target)

    def read(positional: tuple[Any, ...], named: Mapping[str, Any]) -> Forward | None:
        if layers_of(target) != layers:
            return None  # early exit: the target drafts
        cache = named.get("past_key_values")
        ids = named.get("decoder_input_ids", named.get("input_ids", positional[0] if positional else None))
        fed = () if ids is None else tuple(look_at(ids)[0].tolist())
        return Forward(0, fed) if cache is None else Forward(cache.get_seq_length(), fed, entries_of(cache))

    return read


class _Float64(TorchFunctionMode):
    """In its ``with`` block, torch functions get float64 wherever they are called with the dtype float32."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = tuple(torch.float64 if value is torch.float32 else value for value in args)
        kwargs = {name: torch.float64 if value is torch.float32 else value for name, value in (kwargs or {}).items()}
        return (torch.Tensor.double if func is torch.Tensor.float else func)(*args, **kwargs)


def in_float64(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``forward``, the forward pass of a float64 model, such that float32 in the model's code becomes float64.

    The rows are then exact enough to recognise a wrong cache entry.
    """

    @wraps(forward)  # the library reads the signature to know what it may pass
    def computed(*args: Any, **kwargs: Any) -> Any:
        with torch._C._EnableTorchFunction(), _Float64():  # noqa: SLF001 - a memory turns them off
            return forward(*args, **kwargs)

    return computed


def _asked(engine: GenerateCall, *, attentions: bool) -> dict[str, bool]:
    """Return the arguments that make ``generate`` return more than the tokens, as name -> True or False.

    Hidden states are requested if ``engine.hidden_states`` is true, and attentions if ``attentions`` is true. First,
    this function makes a call without speculation; what that call does not return for every layer is not requested.
    """
    asked = {**_ASKED, "output_attentions": attentions, "output_hidden_states": engine.hidden_states}
    result = engine.generate(False, **asked)
    for name in ("hidden_states", "attentions"):
        entries = result.get(name) or result.get(f"decoder_{name}") or (None,)
        asked[f"output_{name}"] &= all(layer is not None for entry in entries for layer in entry or (None,))
    return asked


def entries_of(cache: Any) -> tuple[Any, ...]:
    """Return copies of the keys and the values of each layer of ``cache``; empty arrays are left out.

    Each is an array ``[1, heads, entries, width]`` in float64.
    """
    parts = [getattr(cache, name, None) for name in ("self_attention_cache", "cross_attention_cache")]
    layers = [layer for part in (parts if any(parts) else [cache]) for layer in getattr(part, "layers", ())]
    held = [array for layer in layers for array in (getattr(layer, "keys", None), getattr(layer, "values", None))]
    return tuple(array.detach().numpy().copy() for array in held if array is not None and array.numel())


def _returned(found: Any) -> dict[str, tuple[Any, ...]]:
    named = {name: found.get(name) or found.get(f"decoder_{name}") for name in ALSO_RETURNED}
    return {name: tuple(_array(entry) for entry in entries) for name, entries in named.items() if entries}


def _array(entry: Any) -> Any:
    """Return ``entry``, one token's tensor or a tuple of the tensors of all layers, as one float64 array.

    Arrays of layers are stacked if they have one shape, otherwise flattened and concatenated.
    """
    if isinstance(entry, (tuple, list)):
        layers = [look_at(layer).double().numpy() for layer in entry]
        alike = len({layer.shape for layer in layers}) == 1
        return np.stack(layers) if alike else np.concatenate([layer.ravel() for layer in layers])
    return look_at(entry).double().numpy()
