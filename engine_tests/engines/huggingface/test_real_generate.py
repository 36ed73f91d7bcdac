"""The Hugging Face subject itself: models worth testing with, a law that is the target's, speculation that happens.

Whether the library's speculative paths follow that law is a question for many more draws than a test can afford; here
each path is only drawn often enough to see that it runs, stays in the support and is reproducible.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers.utils import logging as transformers_logging

from specverify.engines.huggingface.real_generate import (
    SETTINGS,
    EngineSetting,
    assisted_activity,
    assisted_counts,
    check_setting,
    exact_law,
    plain_counts,
    prompt_lookup_activity,
    prompt_lookup_counts,
)


def name_of(value: Any) -> str:
    return str(getattr(value, "name", "") or value.__name__)


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_plain_generation_follows_the_exact_law(setting: EngineSetting) -> None:
    """TV of 40 000 draws from at most 200 outcomes stays below .04 but once in 100 000 runs.

    Its expectation is at most .5 sqrt(2 * 200 / (pi 40000)) = .028; one draw moves it by 1/40000, so that it exceeds
    .028 + .012 with probability exp(-2 * 40000 * .012^2) = 1e-5 at most.
    """
    law, samples = exact_law(setting), 40_000
    counts = plain_counts(setting, samples, seed=0)
    assert counts.keys() <= law.keys()
    assert sum(max(mass - counts[new] / samples, 0) for new, mass in law.items()) < 0.04


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("counts_of", [assisted_counts, prompt_lookup_counts], ids=name_of)
@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_speculative_paths_stay_in_the_support_and_repeat(counts_of: Any, setting: EngineSetting) -> None:
    law, counts = exact_law(setting), counts_of(setting, 20, seed=3)
    assert counts.total() == 20
    assert counts.keys() <= law.keys()
    assert counts == counts_of(setting, 20, seed=3) != counts_of(setting, 20, seed=4)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_the_assistant_really_drafts(setting: EngineSetting) -> None:
    """Every call drafts min(gamma, horizon - 1) tokens in its first round, unless the assistant ends the sequence."""
    activity = assisted_activity(setting, 60, seed=0)
    assert activity.drafted >= 60 * (1 if setting.eos else min(setting.gamma, setting.horizon - 1))
    assert activity.acceptance_rate is not None
    assert 0.1 < activity.acceptance_rate < 0.9
    assert activity.rounds < activity.tokens


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("setting", SETTINGS, ids=name_of)
def test_lookups_really_happen(setting: EngineSetting) -> None:
    activity = prompt_lookup_activity(setting, 60, seed=0)
    assert activity.drafted >= 60 * setting.gamma
    assert 0 < activity.accepted < activity.reached
    assert activity.rounds < activity.tokens


def test_nothing_global_is_left_changed() -> None:
    state, verbosity, threads = torch.get_rng_state(), transformers_logging.get_verbosity(), torch.get_num_threads()
    assisted_counts(SETTINGS[0], 3, seed=0)
    assert torch.equal(state, torch.get_rng_state())
    assert (verbosity, threads) == (transformers_logging.get_verbosity(), torch.get_num_threads())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0, expected a number > 0"),
        ({"gamma": 0}, "gamma is 0 and horizon 3, expected gamma >= 1"),
        ({"horizon": 1}, "gamma is 2 and horizon 1, expected gamma >= 1"),
        ({"prompt": ()}, "expected a non-empty prompt"),
        ({"eos": (9,)}, "expected a non-empty prompt and ids in 0..4"),
    ],
)
def test_settings_that_cannot_speculate_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_setting(EngineSetting("a setting", "llama")._replace(**change))
