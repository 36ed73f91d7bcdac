"""Smaller and clearer settings of a failing call."""

from __future__ import annotations

from specverify.engines.huggingface.rows import BASE
from specverify.engines.huggingface.smaller import HOT, clearer_settings, smaller_settings

GREEDY = BASE._replace(name="greedy", sample=False)


def test_what_may_show_more_is_hotter_or_after_another_prompt():
    first, *others = [setting for _, setting in clearer_settings(BASE)]
    assert first.temperature == HOT
    assert {setting.sample for setting in others} == {True, False}
    assert all(sum(a != b for a, b in zip(setting.prompt, BASE.prompt, strict=True)) == 1 for setting in others)
    assert not list(clearer_settings(GREEDY))


def test_smaller_settings_keep_the_prompt_within_the_vocabulary():
    setting = BASE._replace(name="big", top_k=2, eos=(3,), options=(("min_p", 0.2),))
    said = [name for name, _ in smaller_settings(setting)]
    assert {"greedy", "horizon 2", "gamma 1", "no min_p", "no top_k", "no end of sequence"} <= set(said)
    assert not any(name.startswith("vocabulary") for name in said)
    assert "vocabulary 3" in [name for name, _ in smaller_settings(setting._replace(eos=()))]
