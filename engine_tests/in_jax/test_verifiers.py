"""Verifiers written in JAX, as the checks see them: their keys, their arrays, and what they may not do."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
import inspect
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from specverify.base.verdict import Status
from specverify.intercept import caller
from specverify.intercept.cpython import sandbox
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.draws import Tape
from test_support.jax import verifiers
from test_support.jax.verdicts import said

RIGHT = verifiers.vectorised.right


def with_arrays_of_jax(p, q, draft_tokens, key):
    assert isinstance(p, jax.Array)
    return RIGHT(p.at[0].get(), q, draft_tokens, key) if p.ndim > 2 else RIGHT(p, q, draft_tokens, key)


def test_a_right_verifier_holds_and_nothing_of_it_is_unanswered():
    verdict = said(with_arrays_of_jax, "program_is_its_draws")
    assert (verdict.status, verdict.figures["probe"]) == (Status.HOLDS, [])
    assert said(with_arrays_of_jax, "law_is_target").status is Status.HOLDS


def test_one_key_for_the_coins_and_for_the_token_is_refuted():
    verdict = said(verifiers.vectorised.wrong, "law_is_target")
    assert verdict.status is Status.REFUTED
    assert "verifiers.py:" in str(verdict.counterexample)


def with_a_constant_key(p, q, draft_tokens):
    return RIGHT(p, q, draft_tokens, jax.random.PRNGKey(0))


OWN_KEY = jax.random.PRNGKey(1)


def with_a_key_that_is_kept_and_not_split(p, q, draft_tokens):
    return RIGHT(p, q, draft_tokens, OWN_KEY)


@pytest.mark.parametrize("verify", [with_a_constant_key, with_a_key_that_is_kept_and_not_split])
def test_one_key_in_every_call_is_refuted(verify):
    verdict = said(verify, "draws_are_independent", shares=1)
    assert verdict.status is Status.REFUTED
    assert "draws twice from one state of its generator" in verdict.statement


def with_numbers_of_its_own(p, q, draft_tokens, key):
    """It makes a uniform of the words of its key, which is a generator of its own."""
    u = (jax.random.key_data(jax.random.split(key)[0])[..., 1] >> 8) / 2**24
    token = jnp.argmax(jnp.cumsum(p[0]) > u)
    return token[None]


def test_numbers_that_are_made_of_the_words_of_a_key_are_no_draws_and_leave_it_unknown():
    verdict = said(with_numbers_of_its_own, "program_is_its_draws", shares=4)
    assert verdict.status is Status.UNKNOWN
    assert "not a function of the draws that are answered" in verdict.statement


@pytest.fixture
def unknown_version(monkeypatch):
    remembered = (caller._is_ours_or_of_library, sandbox._is_other_library)
    for function in remembered:
        function.cache_clear()
    with monkeypatch.context() as changed:
        changed.setitem(sys.modules, "specverify.intercept.jax.calls", None)
        yield
    for function in remembered:
        function.cache_clear()


def test_draws_of_a_version_that_is_not_known_are_named(unknown_version):
    with sandbox.probed() as found, answered_everywhere(Tape(0)):
        jax.random.uniform(jax.random.PRNGKey(0))
    assert any("uniform" in line for line in found().unanswered)


def with_normal_noise(p, q, draft_tokens, key):
    return jnp.argmax(jnp.log(p[0]) + jax.random.normal(key, p[0].shape))[None]


def test_noise_that_is_not_followed_leaves_it_unknown_by_line_with_a_way_out():
    verdict = said(with_normal_noise, "law_is_target")
    line = inspect.getsourcelines(with_normal_noise)[1] + 1
    assert verdict.status is Status.UNKNOWN
    assert f"at test_verifiers.py:{line}" in verdict.statement
    assert "only sampled (samples_fit_law, in a test with sampled=True)" in verdict.statement


def test_the_example_of_the_page_is_executed_and_holds():
    block = (Path(__file__).parents[2] / "docs/jax.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    scope = {}
    exec(compile(block, "my_verifier.py", "exec"), scope)
    assert said(scope["verify"], "law_is_target").status is Status.HOLDS
    assert said(scope["verify"], "support_at_boundary_draws", shares=6).status is Status.HOLDS
