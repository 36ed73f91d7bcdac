"""The rows of p and q in a counterexample of a decoder."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.testing import SpeculationRefuted, check_verifier


def test_the_rows_of_a_verifier_that_applies_the_temperature_itself_are_shown():
    def rows_of(logits, temperature):
        scaled = np.exp(np.asarray(logits, dtype=float) / temperature)
        return scaled / scaled.sum(axis=-1, keepdims=True)

    def verify(target_logits, draft_logits, draft_tokens, temperature):
        p, q, rng = rows_of(target_logits, temperature), rows_of(draft_logits, temperature), np.random.default_rng()
        for i, token in enumerate(map(int, draft_tokens)):
            if rng.random() >= p[i][token] / q[i][token]:
                return [*map(int, draft_tokens[:i]), int(rng.choice(len(p[i]), p=p[i]))]
        return [*map(int, draft_tokens), int(rng.choice(len(p[-1]), p=p[-1]))]

    with pytest.raises(SpeculationRefuted) as refuted:
        check_verifier(verify, checks=["law_is_target"], quick=True)
    lines = str(refuted.value).splitlines()
    shown = [line for line in lines if line.strip().startswith("after (0, 1, 0):")]
    assert shown
    assert all("p = (" in line and "q = (" in line for line in shown)


@pytest.mark.parametrize(
    ("token", "said"), [(0.5, "0.5 is not a whole number: "), (99, "99 is outside the vocabulary")]
)
def test_a_number_that_is_no_token_is_named_first(token, said):
    with pytest.raises(SpeculationRefuted) as raised:
        check_verifier(lambda p, q, draft_tokens: [token], gammas=(1,), quick=True, checks=["law_is_target"])
    assert said in str(raised.value).partition("\n")[0]
