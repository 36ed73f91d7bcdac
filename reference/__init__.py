"""Speculative decoding algorithms, each short enough to compare with its paper line by line.

``ALGORITHMS`` is the registry, with one row for each named system. The parts (drafters, length rules, verifiers) are
importable by name.
"""

from .algorithms import ALGORITHMS
from .batched import Batch, greedy_batched, inverse_cdf_batched, verify_batched
from .coupling import accept_probability, excess_law, flip, overlap, residual, total_variation
from .drafters.model import model_drafter
from .drafters.ngram import NgramTable, ngram_drafter, ngram_table
from .drafters.prompt_lookup import lookup, prompt_lookup_drafter
from .generate import (
    Generation,
    Sampled,
    autoregressive_generate,
    egag_generate,
    generate,
    inverse_cdf,
    nasd_generate,
    speculative_generate,
)
from .kv_cache import KeepLengths, crop, keep_lengths, tokens_to_feed
from .laws import greedy_law
from .lengths.accepted_ratio import accepted_ratio
from .lengths.confidence import confidence
from .lengths.constant import constant
from .lengths.entropy_adaptive import entropy_adaptive, entropy_gamma, normalized_entropy
from .pmf import argmax, as_pmf, check_pmf, checked_model, one_hot, point_on_argmax, top_tokens
from .rounds import AcceptanceStatistics, acceptance_statistics, assembled, chain_decoder, commit, from_parts
from .types import (
    Algorithm,
    Claim,
    Decoder,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    LengthRule,
    Parts,
    Plan,
    Pmf,
    Round,
    Site,
    State,
    Task,
    Tokens,
    Verified,
    Verifier,
    chain,
)
from .warpers import min_p, repetition_penalty, softmax, top_k, top_p, warped

__all__ = [
    "ALGORITHMS",
    "AcceptanceStatistics",
    "Algorithm",
    "Batch",
    "Claim",
    "Decoder",
    "Draft",
    "Drafter",
    "Draws",
    "Generation",
    "KeepLengths",
    "LanguageModel",
    "LengthRule",
    "NgramTable",
    "Parts",
    "Plan",
    "Pmf",
    "Round",
    "Sampled",
    "Site",
    "State",
    "Task",
    "Tokens",
    "Verified",
    "Verifier",
    "accept_probability",
    "acceptance_statistics",
    "accepted_ratio",
    "argmax",
    "as_pmf",
    "assembled",
    "autoregressive_generate",
    "chain",
    "chain_decoder",
    "check_pmf",
    "checked_model",
    "commit",
    "confidence",
    "constant",
    "crop",
    "egag_generate",
    "entropy_adaptive",
    "entropy_gamma",
    "excess_law",
    "flip",
    "from_parts",
    "generate",
    "greedy_batched",
    "greedy_law",
    "inverse_cdf",
    "inverse_cdf_batched",
    "keep_lengths",
    "lookup",
    "min_p",
    "model_drafter",
    "nasd_generate",
    "ngram_drafter",
    "ngram_table",
    "normalized_entropy",
    "one_hot",
    "overlap",
    "point_on_argmax",
    "prompt_lookup_drafter",
    "repetition_penalty",
    "residual",
    "softmax",
    "speculative_generate",
    "tokens_to_feed",
    "top_k",
    "top_p",
    "top_tokens",
    "total_variation",
    "verify_batched",
    "warped",
]
