"""The implementation note: the main loop, the caches, and what is printed and counted."""

from __future__ import annotations

import numpy as np
import pytest

from reference import Sampled, Task, crop, generate, keep_lengths, one_hot, residual, tokens_to_feed
from reference.algorithms import speculative_sampling
from test_support.errata.attention import after, apart, feed
from test_support.errata.record import Verdict, erratum
from test_support.errata.toolbox import bias, ratio, rule_law
from test_support.laws.rational import P, Q, pmf

TEXT = (0, 3, 1, 2, 2, 0, 1)


def loop(target, drafter, prompt, longest, gamma=3, stop=None, first_pass=False):
    """Run the note's loop for two deterministic models; return the new tokens and its acceptance rate."""
    ids = [None] * longest
    accepted = speculated = 0.0
    place = 0
    if first_pass:
        ids[place] = target(prompt)
        place += 1
    while place < longest:
        count = min(gamma, longest - place - 1)
        for k in range(count):
            ids[place + k] = drafter(prompt + tuple(ids[: place + k]))
        speculated += count
        n = 0
        while n < count and target(prompt + tuple(ids[: place + n])) == ids[place + n]:
            n += 1
        accepted += n
        extra = target(prompt + tuple(ids[: place + n]))
        ids[place + n] = extra
        place += n + 1
        if extra == stop:
            break
    return ids[:place], accepted / speculated


@erratum(
    "IM",
    "3.1",
    stated="The output is as long as the limits allow; prompt and limits are taken as they come.",
    verdict=Verdict.DEFECT,
    correct="max_gen_len = 0 reads behind the end of an array ({empty}). A prompt that is longer than the model's "
    "limit fails when it is copied ({long}). Both need a check before the loop.",
)
def test_lengths_at_the_limits_are_not_checked():
    def run(prompt, max_gen_len, limit):
        ids = np.zeros((1, min(limit, len(prompt) + max_gen_len)), dtype=int)
        ids[0, : len(prompt)] = prompt
        ids[0, len(prompt)] = 7
        return ids

    with pytest.raises(IndexError) as empty:
        run([1, 2], 0, 10)
    with pytest.raises(ValueError, match="broadcast") as long:
        run([1, 2, 3], 5, 2)
    assert run([1, 2], 1, 10).tolist() == [[1, 2, 7]]
    return {"empty": type(empty.value).__name__, "long": type(long.value).__name__}


@erratum(
    "IM",
    "3.3.1",
    stated="gamma is cut to the remaining length minus one.",
    verdict=Verdict.TRUE,
    correct="Then the extra token always fits: for lengths 2 to 9 the loop emits exactly {lengths} tokens.",
)
def test_the_cut_gamma_fills_the_length_exactly():
    def same(text):
        return len(text) % 3

    found = [len(loop(same, same, (0,), longest)[0]) for longest in range(2, 10)]
    assert found == list(range(2, 10))
    return {"lengths": found}


@erratum(
    "IM",
    "3.3.2 and 3.3.3 with use_cache",
    stated="Every call passes the text so far together with the cache.",
    verdict=Verdict.DEFECT,
    correct="The tokens in the cache are fed twice. In a one-layer attention model with {known} tokens, 4 of them "
    "cached, the cache then has {held} entries instead of {right}, and the next token's law is off by {off:.4f}. If "
    "only the new tokens are fed, the law is exact ({exact:.0f} apart, up to rounding).",
)
def test_a_cache_is_fed_only_what_it_has_not_seen():
    _, cache = feed(TEXT[:4])
    rows, whole = feed(TEXT, cache)
    suffix_rows, suffix = feed(tokens_to_feed(TEXT, 4), cache)
    off, exact = apart(rows[-1], after(TEXT)), apart(suffix_rows[-1], after(TEXT))
    assert whole.shape[1] == 11 > suffix.shape[1] == len(TEXT)
    assert off > 0.05
    assert exact < 1e-12
    return {"known": len(TEXT), "held": whole.shape[1], "right": suffix.shape[1], "off": off, "exact": exact}


@erratum(
    "IM",
    "3.3.6, stop tokens",
    stated="Generation ends when the extra token is a stop token.",
    verdict=Verdict.DEFECT,
    correct="An end token among the accepted drafts is not found. Example: the target repeats the text 3, 0, END, 2. "
    "With a perfect drafter and gamma = 3 the decoder continues to {wrong} tokens. If the accepted drafts are "
    "searched too, it stops after {right}.",
)
def test_an_end_inside_the_draft_stops_the_output():
    pattern, end = (3, 0, 1, 2), 1

    def target(text):
        return pattern[(len(text) - 1) % 4]

    wrong = loop(target, target, (0,), 12, stop=end)[0]
    rows = pmf(0, 0, 0, 1)

    def model(text):
        return one_hot(target(text), rows)

    decoder = speculative_sampling.build(Task(model, model, eos=(end,), horizon=12), gamma=3)
    right = generate(decoder, (0,), Sampled(0)).tokens
    assert right == (3, 0, end)
    assert wrong.index(end) + 1 == len(right) < len(wrong) == 12
    return {"wrong": len(wrong), "right": len(right)}


@erratum(
    "IM",
    "3.3.6, a rate of nothing",
    stated="The rate is accepted over drafted tokens.",
    verdict=Verdict.DEFECT,
    correct="The rate divides by 0 if nothing is drafted, because the first pass or the cut gamma leaves no room. So "
    "max_gen_len up to {with_pass} with the first pass, and up to {without} without, raises {error}.",
)
def test_a_rate_of_nothing_divides_by_zero():
    def fails(longest, first_pass):
        try:
            loop(lambda text: 0, lambda text: 0, (0,), longest, first_pass=first_pass)
        except ZeroDivisionError:
            return True
        return False

    with_pass = [longest for longest in range(1, 8) if fails(longest, True)]
    without = [longest for longest in range(1, 8) if fails(longest, False)]
    assert (with_pass, without) == ([1, 2], [1])
    return {"with_pass": max(with_pass), "without": max(without), "error": "ZeroDivisionError"}


@erratum(
    "IM",
    "5.1",
    stated="Cache entries of rejected drafts have to go, or later results are wrong.",
    verdict=Verdict.TRUE,
    correct="If two entries of rejected drafts stay in the cache of the attention model, the next token's law "
    "changes by {off:.4f}. If the cache is cropped to the accepted length, it changes by {exact:.0f}, up to rounding.",
)
def test_entries_of_rejected_drafts_have_to_go():
    known, drafts, replacement = TEXT[:4], (1, 1), 3
    _, cache = feed((*known, *drafts))
    kept = crop(cache, keep_lengths(len(known), 2, 0).target, axis=1)
    right = after((*known, replacement))
    off, exact = apart(feed((replacement,), cache)[0][-1], right), apart(feed((replacement,), kept)[0][-1], right)
    assert off > 0.05
    assert exact < 1e-12
    return {"off": off, "exact": exact}


@erratum(
    "IM",
    "5.3 and 5.4",
    stated="Dropping the last k positions is the slice that ends at -k.",
    verdict=Verdict.DEFECT,
    correct="For k = 0 this slice is empty: {wrong} of {held} positions stay. k = 0 does occur (for the drafter, if "
    "n = gamma - 1 drafts are accepted). Crop to a length instead.",
)
def test_a_slice_to_minus_zero_is_empty():
    cache, k = np.zeros((1, 2, 13, 4)), 0
    assert cache[:, :, :-5, :].shape[2] == 8
    assert keep_lengths(10, 4, 3) == (13, 13)
    wrong = cache[:, :, :-k, :].shape[2]
    assert wrong == 0
    assert crop(cache, 13 - k).shape[2] == 13
    return {"wrong": wrong, "held": cache.shape[2]}


@erratum(
    "IM",
    "5.5",
    stated="After n of gamma drafts the drafter's cache loses gamma - n entries and the target's gamma - n + 1.",
    verdict=Verdict.DEFECT,
    correct="Both numbers are one too large. With 10 known tokens and gamma = 4 the target has 14 entries and must "
    "lose {target}; the drafter has 13 and must lose {draft} (for n = 0, 1, 2, 3).",
)
def test_the_numbers_of_discarded_entries_are_one_too_many():
    known, gamma = 10, 4
    keeps = [keep_lengths(known, gamma, n) for n in range(gamma)]
    target = [known + gamma - keep.target for keep in keeps]
    draft = [known + gamma - 1 - keep.draft for keep in keeps]
    assert [gamma - n + 1 for n in range(gamma)] == [lost + 1 for lost in target]
    assert [gamma - n for n in range(gamma)] == [lost + 1 for lost in draft]
    return {"target": target, "draft": draft}


@erratum(
    "IM",
    "5.5, all drafts accepted",
    stated="Nothing is pruned when every draft was accepted.",
    verdict=Verdict.DEFECT,
    correct="The drafter has not read its own last draft. After 10 known tokens and 4 drafts it has {held} entries, "
    "but needs {needed} before the extra token. If only the newest token is fed, one entry is missing, and the "
    "drafter's law is off by {off:.4f} in the attention model. With {feed} tokens fed nothing is missing.",
)
def test_the_drafter_is_fed_two_tokens_after_a_full_round():
    held = keep_lengths(10, 4, 4).draft
    missing = tokens_to_feed(tuple(range(15)), held)
    _, cache = feed(TEXT[:-2])
    hole, whole = feed(TEXT[-1:], cache)[0][-1], feed(TEXT[-2:], cache)[0][-1]
    off = apart(hole, after(TEXT))
    assert off > 0.05
    assert apart(whole, after(TEXT)) < 1e-12
    assert held == 13
    assert len(missing) == 2
    return {"held": held, "needed": 14, "off": off, "feed": len(missing)}


@erratum(
    "IM",
    "6.2",
    stated="A sample of the debugging output: gamma 4, three drafts shown, accepted 3, correction at position 12.",
    verdict=Verdict.INCONSISTENT,
    correct="The sample shows {shown} drafts for gamma 4, marks {accepted} as accepted, and corrects the rejected "
    "draft at position {place}. The rejection itself is right: r = {r} > p/q = {ratio}.",
)
def test_the_debugging_sample_contradicts_itself():
    drafts = {11: True, 12: True, 13: False}
    r, fraction = 0.75, 0.62
    accepted, place = sum(drafts.values()), min(at for at, kept in drafts.items() if not kept)
    assert (len(drafts), accepted, place) != (4, 3, 12)
    assert len(drafts) != 4
    assert accepted != 3
    assert place != 12
    assert r > fraction
    assert bias(rule_law(ratio(P, Q), lambda _: residual(P, Q))) == 0
    return {"shown": len(drafts), "accepted": accepted, "place": place, "r": r, "ratio": fraction}


@erratum(
    "IM",
    "8",
    stated="The main function is in lines 23 to 260 of its file.",
    verdict=Verdict.INCONSISTENT,
    correct="In the theory note the function has lines 23 to 189. Both notes put drafting at 112-126, verification "
    "at 129-137 and rejection at 139-147. {more} more lines with every part at the same place are not possible, "
    "because Section 7 puts the length adaptation before the draft loop. The evidence is the two tables alone.",
)
def test_the_line_numbers_of_two_notes_disagree():
    parts = {"draft": (112, 126), "verify": (129, 137), "reject": (139, 147)}
    theory, implementation = (23, 189), (23, 260)
    more = implementation[1] - theory[1]
    assert theory != implementation
    assert all(theory[0] < first < last < theory[1] for first, last in parts.values())
    assert more > 0
    return {"more": more}
