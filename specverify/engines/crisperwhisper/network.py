"""A tiny Whisper: seeded weights under the names of CTranslate2, and its forward pass in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import erf, softmax

from specverify.reference import Tokens

VOCABULARY: Final = 12
WIDTH: Final = 32
HEADS: Final = 2
INNER: Final = 32
MELS: Final = 8
FRAMES: Final = 16
"""Positions of the encoder; features have twice as many columns."""
POSITIONS: Final = 40
"""Largest number of tokens of prompt and text together, which is the number of the decoder's positions."""
LAYERS: Final[Mapping[str, int]] = {"encoder": 1, "decoder": 2}
EPSILON: Final = 1e-5
SCALE: Final = 0.5
"""Standard deviation of the weights; with smaller ones texts repeat one token."""
SCALES: Final[Mapping[str, float]] = {"bias": 0.1, "beta": 0.1, "gamma": 2.0, "encodings": 2.0}
"""Last word of a name -> standard deviation of the weights with such names. Biases are small, so that texts vary."""


class Whisper(NamedTuple):
    """A model: its weights by their names in CTranslate2, such as ``decoder/layer/0/ffn/linear_0/weight``."""

    weights: Mapping[str, Any]


def random_whisper(seed: int, near: Whisper | None = None, noise: float = 1.0) -> Whisper:
    """Return a model with random weights, which ``seed`` determines.

    If ``near`` is a model, the weights are those of ``near`` plus ``noise`` times the random ones.
    """
    rng = np.random.default_rng(seed)
    weights = {
        name: (SCALES.get(name.rpartition("/")[2], SCALE) * rng.standard_normal(shape)).astype(np.float32)
        for name, shape in _shapes().items()
    }
    if near is None:
        return Whisper(weights)
    return Whisper({name: value + np.float32(noise) * weights[name] for name, value in near.weights.items()})


def renamed(model: Whisper, ids: Sequence[int]) -> Whisper:
    """Return a model whose token ``i`` is the token ``ids[i]`` of ``model``."""
    moved = ("decoder/embeddings/weight", "decoder/projection/weight")
    return Whisper(dict(model.weights) | {name: model.weights[name][list(ids)] for name in moved})


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "encoder/conv1/weight": (WIDTH, MELS, 3),
        "encoder/conv1/bias": (WIDTH,),
        "encoder/conv2/weight": (WIDTH, WIDTH, 3),
        "encoder/conv2/bias": (WIDTH,),
        "encoder/position_encodings/encodings": (FRAMES, WIDTH),
        "decoder/embeddings/weight": (VOCABULARY, WIDTH),
        "decoder/position_encodings/encodings": (POSITIONS, WIDTH),
        "decoder/projection/weight": (VOCABULARY, WIDTH),
    }
    for part, layers in LAYERS.items():
        shapes |= _norm(f"{part}/layer_norm")
        for layer in range(layers):
            at = f"{part}/layer/{layer}"
            shapes |= _attention_shapes(f"{at}/self_attention", (3 * WIDTH, WIDTH))
            if part == "decoder":
                shapes |= _attention_shapes(f"{at}/attention", (WIDTH, 2 * WIDTH, WIDTH))
            shapes |= _norm(f"{at}/ffn/layer_norm")
            shapes |= _linear_shapes(f"{at}/ffn/linear_0", INNER, WIDTH)
            shapes |= _linear_shapes(f"{at}/ffn/linear_1", WIDTH, INNER)
    return shapes


def _norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}/gamma": (WIDTH,), f"{name}/beta": (WIDTH,)}


def _linear_shapes(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/weight": (outputs, inputs), f"{name}/bias": (outputs,)}


def _attention_shapes(name: str, outputs: Sequence[int]) -> dict[str, tuple[int, ...]]:
    shapes = _norm(f"{name}/layer_norm")
    for index, number in enumerate(outputs):
        shapes |= _linear_shapes(f"{name}/linear/{index}", number, WIDTH)
    return shapes


def encoded(model: Whisper, features: Any) -> Any:
    """Return the encoder's states ``[FRAMES, WIDTH]``, to which the decoder attends.

    ``features``, ``[MELS, 2 * FRAMES]``, are the input of the encoder of ``model``.
    """
    states = _gelu(_convolved(model, "encoder/conv1", np.asarray(features, float), stride=1))
    states = _gelu(_convolved(model, "encoder/conv2", states, stride=2)).T
    states = states + model.weights["encoder/position_encodings/encodings"].astype(float)
    for layer in range(LAYERS["encoder"]):
        at = f"encoder/layer/{layer}"
        states = states + _attended(model, f"{at}/self_attention", states, None, causal=False)
        states = states + _fed_forward(model, f"{at}/ffn", states)
    return _normed(model, "encoder/layer_norm", states)


def next_logits(model: Whisper, heard: Any, tokens: Tokens) -> Any:
    """Return the logits ``[VOCABULARY]`` of the token after ``tokens``, in float64.

    ``heard`` are the states of the encoder of ``model``.
    """
    weights = model.weights
    states = weights["decoder/embeddings/weight"][list(tokens)].astype(float)
    states = states + weights["decoder/position_encodings/encodings"][: len(tokens)].astype(float)
    for layer in range(LAYERS["decoder"]):
        at = f"decoder/layer/{layer}"
        states = states + _attended(model, f"{at}/self_attention", states, None, causal=True)
        states = states + _attended(model, f"{at}/attention", states, heard, causal=False)
        states = states + _fed_forward(model, f"{at}/ffn", states)
    return _normed(model, "decoder/layer_norm", states)[-1] @ weights["decoder/projection/weight"].astype(float).T


def _convolved(model: Whisper, name: str, inputs: Any, stride: int) -> Any:
    weight, bias = (model.weights[f"{name}/{part}"].astype(float) for part in ("weight", "bias"))
    padded = np.pad(inputs, ((0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=1)[:, ::stride]
    return np.einsum("oik,itk->ot", weight, windows) + bias[:, None]


def _attended(model: Whisper, name: str, states: Any, heard: Any | None, *, causal: bool) -> Any:
    normed = _normed(model, f"{name}/layer_norm", states)
    if heard is None:
        parts = np.split(_linear(model, f"{name}/linear/0", normed), 3, axis=-1)
    else:
        pair = np.split(_linear(model, f"{name}/linear/1", heard), 2, axis=-1)
        parts = [_linear(model, f"{name}/linear/0", normed), *pair]
    queries, keys, values = (part.reshape(len(part), HEADS, -1).swapaxes(0, 1) for part in parts)
    scores = queries @ keys.swapaxes(1, 2) / np.sqrt(WIDTH / HEADS)
    if causal:
        scores = scores + np.triu(np.full(scores.shape[1:], -np.inf), 1)
    mixed = (softmax(scores, axis=-1) @ values).swapaxes(0, 1).reshape(len(states), WIDTH)
    return _linear(model, f"{name}/linear/{1 if heard is None else 2}", mixed)


def _fed_forward(model: Whisper, name: str, states: Any) -> Any:
    inner = _gelu(_linear(model, f"{name}/linear_0", _normed(model, f"{name}/layer_norm", states)))
    return _linear(model, f"{name}/linear_1", inner)


def _linear(model: Whisper, name: str, inputs: Any) -> Any:
    return inputs @ model.weights[f"{name}/weight"].astype(float).T + model.weights[f"{name}/bias"].astype(float)


def _normed(model: Whisper, name: str, states: Any) -> Any:
    centred = states - states.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
    return scaled * model.weights[f"{name}/gamma"].astype(float) + model.weights[f"{name}/beta"].astype(float)


def _gelu(values: Any) -> Any:
    return values * (1 + erf(values / np.sqrt(2))) / 2
