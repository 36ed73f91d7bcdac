"""A verifier of batches of logits: one call processes and decides several rows.

    verify(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p) -> emitted tokens, row by row
    verify(target_logits, draft_logits, draft_tokens, lengths, temperature, top_k, top_p, min_p) -> the same

``target_logits`` is ``[B, gamma + 1, vocabulary]`` and ``draft_logits`` ``[B, gamma, vocabulary]``, float64. The form
combines ``logits_verifier`` (sampling parameters, which hold for all rows of a call, and the expected law) with
``batched_verifier`` (lengths, neighbours and the answer). The logits of neighbours and of padding are finite too.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from specverify.base.callables import first_line
from specverify.laws.deep_scenarios import CROWDED
from specverify.reference import Claim
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.batch_call import BESIDE, Arguments, attempted
from specverify.subjects.batched_verifier import build, crowded_variant, place_of, together
from specverify.subjects.checked_calls import Convert
from specverify.subjects.deep import AtGamma, deep_of
from specverify.subjects.logits_verifier import Setting, logits_rows, passed, processed, settings_of, untied_logits
from specverify.subjects.subject import Subject, Variant
from specverify.subjects.verifier import setting_of_decoder, variant_of


def batched_logits_subject(verify: BareVerifier, name: str, gammas: tuple[int, ...] | None = None) -> Subject:
    """Return the subject of a verifier of batches of logits; it claims to be lossless and optimal.

    All settings of its parameters are examined at the largest of ``gammas``, the first setting at the others. Two
    random rows are examined together in the first setting and in the one with most truncations; in the latter one row
    is examined alone too.
    """
    chosen, settings = gammas or (2,), settings_of(verify)
    most = max(chosen)
    full = settings[min(2, len(settings) - 1)]
    pairs = [(gamma, settings[0]) for gamma in chosen if gamma != most] + [(most, setting) for setting in settings]
    sampled = partial(build, verify, arguments_of(verify, full), most, BESIDE)
    return Subject(
        name=name,
        summary=first_line(verify, "a verifier of batches of logits"),
        claims=frozenset(Claim),
        rational=False,
        stops_at_eos=False,
        intercepted=True,
        kind="batched logits",
        deep=deep_of(_crowded(verify, full), gammas, (CROWDED,), _crowded(verify, settings[0])),
        situations=(
            variant_at(verify, most, full, company=False),
            *(variant_at(verify, gamma, setting, joint=setting in (settings[0], full)) for gamma, setting in pairs),
            setting_of_decoder(sampled, _label(verify, most, full), most, partial(processed, full)),
        ),
    )


def _crowded(verify: BareVerifier, setting: Setting) -> AtGamma:
    return partial(
        crowded_variant, verify, arguments_of(verify, setting), _values(setting), partial(processed, setting)
    )


def variant_at(
    verify: BareVerifier, gamma: int, setting: Setting, *, company: bool = True, joint: bool = False
) -> Variant:
    """Return the variant of a subject at one gamma and sampling setting.

    If ``company``, the row is examined in a batch, else alone. If ``joint``, two random rows are also examined
    together.
    """
    arguments = arguments_of(verify, setting)
    return variant_of(
        _label(verify, gamma, setting, company),
        partial(build, verify, arguments, gamma, BESIDE if company else None),
        process=partial(processed, setting),
        joint=partial(together, verify, arguments, gamma) if joint else None,
    )


def arguments_of(verify: BareVerifier, setting: Setting) -> Arguments:
    """Return the description of a call's arguments at a sampling setting: their names, rows, logits and parameters."""
    told = partial(passed, verify, setting)
    return Arguments(("target_logits", "draft_logits"), logits_rows, untied_logits, told, _attempt)


def _label(verify: BareVerifier, gamma: int, setting: Setting, company: bool = True) -> str:
    return f"gamma={gamma}{_values(setting)}, {place_of(verify) if company else 'alone'}"


def _values(setting: Setting) -> str:
    return "".join(f" {parameter}={value:g}" for parameter, value in setting)


def _attempt(verify: BareVerifier, convert: Convert) -> Any:
    return attempted(arguments_of(verify, ()), verify, convert)
