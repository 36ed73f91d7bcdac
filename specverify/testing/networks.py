"""Networks for an engine that takes networks, made from the models of a scenario."""

from __future__ import annotations

from typing import Any, Literal, get_args

from specverify.base.arguments import check_callable, check_choice, check_integer
from specverify.reference import LanguageModel

NetworkCache = Literal["dynamic", "tuple"]
"""The kind of a new cache: transformers' ``DynamicCache``, or a tuple of (keys, values) for each layer."""
NetworkResult = Literal["output", "logits"]
"""What a forward pass returns: logits and cache with the names of transformers, or the logits alone."""


def torch_network(
    model: LanguageModel,
    vocabulary: int,
    *,
    returns: NetworkResult = "output",
    cache: NetworkCache | None = "dynamic",
    dtype: str = "float32",
) -> Any:
    """Return a language model of a scenario as a torch network, for an engine that takes networks.

    Args:
        model: The pmf ``[vocabulary]`` of the next token, by all tokens so far: ``scenario.target`` or
            ``scenario.draft``.
        vocabulary: The number of tokens, ``scenario.vocabulary``.
        returns: ``"output"``: a pass returns ``(logits, past_key_values)`` with these names, as models of transformers
            do. ``"logits"``: the logits ``[B, length, vocabulary]`` alone.
        cache: The kind of a new cache of keys and values: ``"dynamic"`` is transformers' ``DynamicCache``, ``"tuple"``
            a tuple with one pair (keys, values), each ``[B, 1, length, 1]``. A cache that the engine makes itself is
            used as it is. None: the network has no cache.
        dtype: The dtype of the logits. With ``"float64"`` rounding is smaller, but a loop that keeps q in a buffer of
            torch's default dtype then compares rows of two dtypes.

    Returns:
        A ``torch.nn.Module`` whose logits are the logarithms of the pmfs. A pass takes the arguments of a causal model
        of transformers: ``input_ids``, ``attention_mask`` (of two or four dimensions), ``position_ids``,
        ``past_key_values``, ``use_cache``, ``cache_position``, ``logits_to_keep``. Other arguments have no effect.

    Raises:
        ValueError: For a value outside these choices.
        ImportError: Without torch, or for ``cache="dynamic"`` without transformers.

    Examples:
        >>> import torch
        >>> network = torch_network(lambda tokens: [0.5, 0.5], 2, cache=None)
        >>> network(torch.tensor([[0, 1]])).logits.softmax(-1)[0, -1].tolist()
        [0.5, 0.5]
    """
    check_callable(model, "the model", arguments=1)
    check_integer(vocabulary, "vocabulary", least=2)
    check_choice(returns, "returns", get_args(NetworkResult))
    check_choice(cache, "cache", (*get_args(NetworkCache), None))
    check_choice(dtype, "dtype", ("float64", "float32", "bfloat16", "float16"))
    from specverify.subjects.torch_network import Network  # noqa: PLC0415 - torch is an extra

    kept = None if returns == "logits" else cache
    return Network(model, vocabulary, dtype, kept, only_logits=returns == "logits").eval()
