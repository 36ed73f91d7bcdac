"""The survey of CrisperWhisper refutes wrong decoders through the same adapter, and holds for the engine as it is.

Run by ``nox -s engines -- crisperwhisper``, where the engine is installed.
"""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("ctranslate2", reason="needs the engine: nox -s engines -- crisperwhisper")

from specverify.base.verdict import Status
from specverify.engines.crisperwhisper.adapter import END, draft, texts
from specverify.engines.crisperwhisper.rows import CALLS, SOUNDS, law
from specverify.subjects.decoding import EngineRow, row_subject
from specverify.testing import check_subject


def beyond_its_end(call):
    return draft("near", call._replace(suppressed=(*call.suppressed, END)))


def without_suppression(call):
    return draft("near", call._replace(suppressed=()))


def one_token_short(call):
    return draft("near", call._replace(horizon=call.horizon - 1))


def first_draft_accepted(call):
    """Begin each text with token 8, as if it had been drafted and accepted."""
    return [8, *draft("near", call._replace(prompt=(*call.prompt, 8), horizon=call.horizon - 1))]


def status(decode, name):
    calls = tuple(CALLS[name]._replace(sound=sound) for sound in SOUNDS)
    row = EngineRow(texts(decode, calls), partial(law, calls))
    return [verdict.status for verdict in check_subject(row_subject("x", "x", row), sampled=True, on_fail=None)]


@pytest.mark.parametrize("name", CALLS)
def test_the_engine_as_it_is_holds(name):
    assert status(partial(draft, "near"), name) == [Status.HOLDS]


@pytest.mark.parametrize(
    ("decode", "name"),
    [
        (beyond_its_end, "three drafts"),
        (without_suppression, "suppressed tokens"),
        (one_token_short, "up to the last position"),
        (first_draft_accepted, "three drafts"),
    ],
)
def test_a_wrong_decoder_is_refuted(decode, name):
    assert status(decode, name) == [Status.REFUTED]
