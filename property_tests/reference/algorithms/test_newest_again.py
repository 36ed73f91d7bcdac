"""Rules that engines ship, two vocabularies, schedules over batches: the law of every round against plain loops."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import pytest

from test_support.reference.plain_loops import (
    ROWS,
    SHORT,
    TASKS,
    algorithm_1,
    best,
    coin,
    drafts_of,
    drawn,
    each_in_turn,
    matched,
    norm,
    point,
    rounds_of,
    rounds_of_loop,
    small_tasks,
    surplus,
)

F = Fraction


def entropy(row):
    return -math.fsum(float(mass) * math.log(mass) for mass in row if mass > 0)


def fly_of_vllm(task, window, threshold, count):
    """Native coins first; a refused draft is turned into an accepted one by what the next ``window`` coins said."""

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        ahead = [list(task.target(text + tokens[:i])) for i in range(len(tokens) + 1)]
        native = [coin(draws, ahead[i][d] / rows[i][d], len(text), i) for i, d in enumerate(tokens)]
        final = list(native)
        for i, d in enumerate(tokens):
            top = sorted(map(float, ahead[i]))[-3:]
            unsure = -sum(x * math.log(x) for x in top if x) >= threshold
            if not native[i] and ahead[i][d] > 0 and i + window < len(tokens) and unsure:
                final[i] = all(native[i + 1 : i + window + 1])
        n = final.index(False) if False in final else len(tokens)
        last = surplus(ahead[n], rows[n]) if n < len(tokens) else ahead[n]
        return (*tokens[:n], drawn(draws, last, "last", len(text))), n, kept

    return one_round


def lowered_bar(task, threshold, alpha, count):
    def keeps(p, q, d, _):
        return min(F(1), p[d] / q[d] / min(F(str(threshold)), F(math.exp(-alpha * entropy(p)))))

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        return *each_in_turn(draws, task.target, text, tokens, rows, keeps, lambda p, q, d: surplus(p, q)), kept

    return one_round


def argmaxes_of(task, text, count):
    tokens = ()
    while len(tokens) < count:
        tokens = (*tokens, best(task.draft(text + tokens)))
    return tokens


def two_thresholds(task, single, acc, count):
    """The kernel's walk over a chain: mass of this place over acc, or this mass alone; a refused draft is taken out."""

    def one_round(draws, text, room, kept):
        tokens = argmaxes_of(task, text, min(count, room))
        for i, d in enumerate(tokens):
            p = list(task.target(text + tokens[:i]))
            if not (p[d] >= single or coin(draws, p[d] / acc, len(text), i)):
                left = [mass if v != d else F(0) for v, mass in enumerate(p)]
                return (*tokens[:i], drawn(draws, norm(left), "left", len(text))), i, kept
        return (*tokens, drawn(draws, task.target(text + tokens), "bonus", len(text))), len(tokens), kept

    return one_round


def by_phase(task, top, delta, begin, end, count):
    """The kernel's walk over sorted values: the first always, on while v_1 - delta <= v_j; a mark flips the phase."""

    def one_round(draws, text, room, kept):
        on = False
        for token in text:
            on = token == begin or (on and token != end)
        tokens = argmaxes_of(task, text, min(count, room))
        for i, d in enumerate(tokens):
            p = list(task.target(text + tokens[:i]))
            order = sorted(range(len(p)), key=lambda v: -p[v])[:top]
            near = order[:1]
            for v in order[1:]:
                if p[order[0]] - (delta if on else 0) > p[v]:
                    break
                near.append(v)
            if d not in near:
                return (*tokens[:i], best(p)), i, kept
        return (*tokens, best(task.target(text + tokens))), len(tokens), kept

    return one_round


def old_response(task, lenience):
    """All uniforms of the old response, the cut at the first that is above the ratio, then one draw of p a round."""

    def one_round(draws, text, room, cut):
        tokens, rows = drafts_of(draws, task.draft, text, 0 if cut else room + 1)
        stay = [
            coin(draws, lenience * task.target(text + tokens[:i])[d] / rows[i][d], len(text), i)
            for i, d in enumerate(tokens)
        ]
        n = stay.index(False) if False in stay else len(tokens)
        more = () if tokens and n == len(tokens) else (drawn(draws, task.target(text + tokens[:n]), "on", len(text)),)
        return (*tokens[:n], *more), n, True

    return one_round


def intersected(task, missing, count):
    def q(text):
        row = [mass if v not in missing else F(0) for v, mass in enumerate(task.draft(text))]
        return norm(row) if sum(row) else None

    def one_round(draws, text, room, kept):
        tokens, rows = (), []
        while len(tokens) < min(count, room) and q(text + tokens):
            rows.append(q(text + tokens))
            tokens = (*tokens, drawn(draws, rows[-1], "draft", len(text), len(tokens)))
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


def respelled(task, pieces, count):
    def one_round(draws, text, room, kept):
        spelled = ()
        while len(spelled) < min(count, room):
            guess = best(task.draft(text + spelled))
            spelled = (*spelled, *pieces.get(guess, (guess,)))
        return *matched(draws, task.target, text, spelled[: min(count, room)]), kept

    return one_round


def spellings(task, pieces, text, wanted):
    """The probability that the drafter's text behind ``text`` begins with ``wanted``: over all its token sequences."""
    if not wanted:
        return F(1)
    total = F(0)
    for token, mass in enumerate(task.draft(text)):
        piece = pieces.get(token, (token,))
        common = min(len(piece), len(wanted))
        if piece[:common] == wanted[:common] and mass:
            total += mass * spellings(task, pieces, text + piece, wanted[len(piece) :])
    return total


def by_strings(task, pieces, count, size):
    """The drafter draws its own tokens; what is compared is the probability that it spells the target's token."""

    def one_round(draws, text, room, kept):
        spelled = ()
        while len(spelled) < min(count, room):
            token = drawn(draws, task.draft(text + spelled), "draft", len(text), len(spelled))
            spelled = (*spelled, *pieces.get(token, (token,)))
        tokens, rows = spelled[: min(count, room)], []
        for i in range(len(tokens)):
            whole = spellings(task, pieces, text, tokens[:i])
            rows.append([spellings(task, pieces, text, (*tokens[:i], v)) / whole for v in range(size)])
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


def blind_rows(task, count, markov=False, least=0):
    """Row i behind i argmaxes of q; with a bias, times the row behind the token before, one token after another."""

    def one_round(draws, text, room, kept):
        tokens, rows = (), []
        for slot in range(min(count, room)):
            row = list(task.draft(text + argmaxes_of(task, text, slot)))
            if markov:
                bias = task.draft((text + tokens)[-1:])
                times = [a * b for a, b in zip(row, bias, strict=True)]
                row = norm(times) if sum(times) else row
            if max(row) < least:
                break
            rows.append(row)
            tokens = (*tokens, drawn(draws, row, "draft", len(text), slot))
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


def made_ahead(task, count, ahead):
    """A dictionary from texts to drafts, filled before the coins are tossed and emptied after each round."""

    def one_round(draws, text, room, cache):
        cache = dict(cache)
        tokens = cache[text][:room] if text in cache else drafts_of(draws, task.draft, text, min(count, room))[0]
        rows = [list(task.draft(text + tokens[:i])) for i in range(len(tokens))]
        filled = {}
        for n in range(len(tokens) + 1):
            here = text + tokens[:n]
            row = [mass if v not in tokens[n : n + 1] else F(0) for v, mass in enumerate(task.draft(here))]
            behind = (*here, best(row))
            top = sorted(task.draft(here), reverse=True)[:2]
            if max(row) in top and max(row) > 0 and min(ahead, room - n - 1) > 0:
                filled[behind] = drafts_of(draws, task.draft, behind, min(ahead, room - n - 1))[0]
        new, n = algorithm_1(draws, task.target, text, tokens, rows)
        now = text + new
        return new, n, tuple(item for item in filled.items() if item[0] == now)

    return one_round


def whole_inner_rounds(task, least, inner):
    def small(text):
        return task.draft(text[1:] or text[-1:])

    def one_round(draws, text, room, kept):
        tokens = ()
        limit = min(least + inner, room)
        while len(tokens) < min(least, limit):
            here = text + tokens
            guesses, rows = drafts_of(draws, small, here, min(inner, limit - len(tokens)))
            tokens = (tokens + algorithm_1(draws, task.draft, here, guesses, rows)[0])[:limit]
        rows = [list(task.draft(text + tokens[:i])) for i in range(len(tokens))]
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


def admitted(task, count, budget, beside, seen):
    """Slots of both requests sorted by survival, own ones first where they tie; the other one's block behind a text."""

    def scores(tokens, rows):
        products, value = [], F(1)
        for d, row in zip(tokens, rows, strict=True):
            value *= row[d] if seen else max(row)
            products.append(value)
        return products

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        if tokens:
            others, of_others = drafts_of(draws, task.draft, beside, count)
            slots = [(-s, 0) for s in scores(tokens, rows)] + [(-s, 1) for s in scores(others, of_others)]
            mine = [who for _, who in sorted(slots)[:budget]].count(0)
            tokens, rows = tokens[:mine], rows[:mine]
        return *algorithm_1(draws, task.target, text, tokens, rows), kept

    return one_round


def in_lockstep(task, count, beside):
    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        new, n = algorithm_1(draws, task.target, text, tokens, rows)
        if len(new) > 1:
            others, of_others = drafts_of(draws, task.draft, beside, count)
            theirs, _ = algorithm_1(draws, task.target, beside, others, of_others)
            new, n = new[: len(theirs)], min(n, len(theirs))
        return new, n, kept

    return one_round


def grammar_masked(task, grammar, count):
    def p(text):
        row = list(task.target(text))
        named = [v for v in dict(grammar).get(text[-1], range(len(row))) if v < len(row)] or range(len(row))
        kept = [mass if v in named else F(0) for v, mass in enumerate(row)]
        return norm(kept) if sum(kept) else norm([F(v in named) for v in range(len(row))])

    def one_round(draws, text, room, kept):
        tokens, rows = drafts_of(draws, task.draft, text, min(count, room))
        return *algorithm_1(draws, p, text, tokens, rows), kept

    return one_round


def second_half(row, falling):
    """The part of the unit interval above 1/2 that each token's interval covers, in one of two orders, doubled."""
    order = sorted(range(len(row)), reverse=falling)
    changed, start = [F(0)] * len(row), F(0)
    for v in order:
        end = start + row[v]
        changed[v] = 2 * max(F(0), end - max(start, F(1, 2)))
        start = end
    return changed


def keyed(task, keep, count):
    def key(draws, *site):
        return drawn(draws, [F(1, 2), F(1, 2)], "key", *site) == 1

    def one_round(draws, text, room, kept):
        tokens, keys = (), []
        while len(tokens) < min(count, room):
            keys.append(key(draws, "draft", len(text), len(tokens)))
            row = second_half(task.draft(text + tokens), keys[-1])
            tokens = (*tokens, drawn(draws, row, "d", len(text), len(tokens)))
        for i, d in enumerate(tokens):
            p, q = list(task.target(text + tokens[:i])), list(task.draft(text + tokens[:i]))
            if keep == "strength":
                p, q = second_half(p, keys[i]), second_half(q, keys[i])
            if not coin(draws, p[d] / q[d], len(text), i):
                left = surplus(p, q)
                left = left if keep == "strength" else second_half(left, key(draws, "instead", len(text)))
                return (*tokens[:i], drawn(draws, left, "instead", len(text))), i, kept
        last = second_half(list(task.target(text + tokens)), key(draws, "bonus", len(text)))
        return (*tokens, drawn(draws, last, "bonus", len(text))), len(tokens), kept

    return one_round


def columns(task, count):
    """The arrays of the paper: X of the last sweep, its rows P; all places are judged, the text moves to the miss."""

    def one_round(draws, text, room, kept):
        size = len(task.target(text))
        even = [F(1, size)] * size
        before = list(kept[: min(count, room)])
        while len(before) < min(count, room):
            before.append((drawn(draws, even, "even", len(text), len(before)), tuple(even)))
        old = tuple(x for x, _ in before)
        rows = [list(task.target(text + old[:i])) for i in range(len(old) + 1)]
        new, missed = [], []
        for i, (x, q) in enumerate(before):
            if coin(draws, rows[i][x] / q[x], len(text), i):
                new.append((x, tuple(rows[i])))
            else:
                new.append((drawn(draws, surplus(rows[i], q), "instead", len(text), i), tuple(rows[i])))
                missed.append(i)
        n = min(missed, default=len(old))
        last = new[n][0] if missed else drawn(draws, rows[-1], "bonus", len(text))
        return (*old[:n], last), n, tuple(new[n + 1 :])

    return one_round


def sampled_and_respelled(task, pieces, count):
    def one_round(draws, text, room, kept):
        spelled = ()
        while len(spelled) < min(count, room):
            token = drawn(draws, task.draft(text + spelled), "draft", len(text), len(spelled))
            spelled = (*spelled, *pieces.get(token, (token,)))
        return *matched(draws, task.target, text, spelled[: min(count, room)]), kept

    return one_round


def share_of_most_gain(task, count, costs, beside):
    """All scores of both requests in one list; each share is tried, and the first of the best is taken."""

    def block(text, size):
        rows = [list(task.draft(text + argmaxes_of(task, text, slot))) for slot in range(size)]
        return tuple(map(best, rows)), [math.prod(map(max, rows[: slot + 1])) for slot in range(size)]

    def one_round(draws, text, room, kept):
        tokens, scores = block(text, min(count, room))
        others = block(beside, count)[1] if tokens else []
        slots = sorted([(-s, 0) for s in scores] + [(-s, 1) for s in others])
        tried = [slots[: math.ceil(F(share) * len(slots))] for share, _ in costs]
        worth = [-sum(s for s, _ in some) / F(cost) for some, (_, cost) in zip(tried, costs, strict=True)]
        mine = [who for _, who in tried[worth.index(max(worth))]].count(0)
        return *matched(draws, task.target, text, tokens[:mine]), kept

    return one_round


def joint_law(model, text, count):
    """Every block of ``count`` tokens behind ``text``, with its probability."""
    size = len(model(text))
    return {
        block: math.prod(model(text + block[:i])[token] for i, token in enumerate(block))
        for block in product(range(size), repeat=count)
    }


def place_given(joint, known, place, size):
    """The law of one place given those of ``known``, by adding up the blocks that agree with it."""
    row = [F(0)] * size
    for block, mass in joint.items():
        if all(block[i] == token for i, token in known.items()):
            row[block[place]] += mass
    return norm(row)


def states_that_came_true(task, block, depth):
    """Places in a dictionary; the guesses of a pass are dictionaries too, made of the rows before the pass."""

    def one_round(draws, text, room, kept):
        count, size = min(block, room + 1), len(task.target(text))
        joint, known, guesses, saved = joint_law(task.target, text, count), {}, [], 0
        while len(known) < count:
            rows = {i: place_given(joint, known, i, size) for i in range(count) if i not in known}
            order = sorted(rows, key=lambda i: (-max(rows[i]), i))
            known = {**known, order[0]: drawn(draws, rows[order[0]], "fill", len(text), len(known))}
            if len(known) == count:
                break
            if known in guesses:
                saved += 1
                continue
            ahead = [(i, best(rows[i])) for i in order[1 : depth + 1]]
            guesses = [{**known, **dict(ahead[: n + 1])} for n in range(len(ahead))]
        return tuple(known[i] for i in range(count)), saved, kept

    return one_round


def any_order(task, block, window):
    """One permutation of the places that are left a pass; all drafts, all coins, the first that fails is replaced."""

    def one_round(draws, text, room, kept):
        count, size = min(block, room + 1), len(task.target(text))
        joint, known, stayed = joint_law(task.target, text, count), {}, 0
        while len(known) < count:
            site = (len(text), len(known))
            orders = list(permutations(i for i in range(count) if i not in known))
            order = orders[drawn(draws, norm([1] * len(orders)), "order", *site)][:window]
            q = [place_given(joint, known, i, size) for i in order]
            drafts = [drawn(draws, row, "draft", *site, i) for i, row in zip(order, q, strict=True)]
            for i, d, row in zip(order, drafts, q, strict=True):
                p = place_given(joint, known, i, size)
                if not coin(draws, p[d] / row[d], *site, i):
                    known = {**known, i: drawn(draws, surplus(p, row), "instead", *site)}
                    break
                known, stayed = {**known, i: d}, stayed + 1
        return tuple(known[i] for i in range(count)), stayed, kept

    return one_round


GRAMMAR = ((0, (0,)), (1, (0, 2)))
COSTS = ((F(1, 4), 1), (F(1, 2), F(3, 2)), (1, 2))
AGAIN = {
    "fly-vllm": ({"window": 1, "threshold": 0.5, "gamma": 3}, lambda task: fly_of_vllm(task, 1, 0.5, 3)),
    "entropy-verification": (
        {"threshold": 0.9, "alpha": 0.4, "gamma": 2},
        lambda task: lowered_bar(task, 0.9, 0.4, 2),
    ),
    "accept-thresholds": (
        {"single": F(2, 5), "acc": F(1, 2), "gamma": 2},
        lambda task: two_thresholds(task, F(2, 5), F(1, 2), 2),
    ),
    "relaxed-acceptance": (
        {"top": 2, "delta": F(1, 2), "begin": 0, "end": 1, "gamma": 2},
        lambda task: by_phase(task, 2, F(1, 2), 0, 1, 2),
    ),
    "spec-rl": ({"lenience": F(3, 2)}, lambda task: old_response(task, F(3, 2))),
    "tli": ({"missing": (1,), "gamma": 2}, lambda task: intersected(task, (1,), 2)),
    "slem": ({"pieces": ((1, (1, 0)),), "gamma": 3}, lambda task: respelled(task, {1: (1, 0)}, 3)),
    "slrs": (
        {"pieces": ((0, (0, 1)), (1, (0, 0))), "gamma": 2},
        lambda task: by_strings(task, {0: (0, 1), 1: (0, 0)}, 2, len(task.draft((0,)))),
    ),
    "dflash-sampled": ({"block": 2}, lambda task: blind_rows(task, 2)),
    "dspark": ({"block": 2, "least": F(2, 5)}, lambda task: blind_rows(task, 2, markov=True, least=F(2, 5))),
    "pre-drafted": ({"gamma": 2, "ahead": 1}, lambda task: made_ahead(task, 2, 1)),
    "staged-speculative": ({"least": 2, "inner": 1}, lambda task: whole_inner_rounds(task, 2, 1)),
    "scheduled-verification": (
        {"gamma": 2, "budget": 2, "beside": (1, 0)},
        lambda task: admitted(task, 2, 2, (1, 0), seen=False),
    ),
    "scheduled-by-draft": (
        {"gamma": 2, "budget": 2, "beside": (1, 0)},
        lambda task: admitted(task, 2, 2, (1, 0), seen=True),
    ),
    "lockstep-batch": ({"gamma": 2, "beside": (1, 0)}, lambda task: in_lockstep(task, 2, (1, 0))),
    "constrained-decoding": ({"grammar": GRAMMAR, "gamma": 2}, lambda task: grammar_masked(task, GRAMMAR, 2)),
    "watermarked": ({"keep": "strength", "gamma": 2}, lambda task: keyed(task, "strength", 2)),
    "sjd-pac": ({"window": 2}, lambda task: columns(task, 2)),
    "token-timing": ({"pieces": ((1, (1, 0)),), "gamma": 3}, lambda task: sampled_and_respelled(task, {1: (1, 0)}, 3)),
    "d-cut": (
        {"gamma": 2, "costs": COSTS, "beside": (1, 0)},
        lambda task: share_of_most_gain(task, 2, COSTS, (1, 0)),
    ),
    "spiffy": ({"block": 3, "depth": 1}, lambda task: states_that_came_true(task, 3, 1)),
    "self-speculative-diffusion": ({"block": 3, "window": 2}, lambda task: any_order(task, 3, 2)),
}
AT_TWO_LEVELS = {
    "pre-drafted",
    "staged-speculative",
    "scheduled-verification",
    "scheduled-by-draft",
    "lockstep-batch",
    "watermarked",
    "slrs",
    "sjd-pac",
    "token-timing",
    "self-speculative-diffusion",
}
START = {"pre-drafted": (), "sjd-pac": ()}
FEWER = {"lockstep-batch": small_tasks(("generic",), horizon=2)}


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", AGAIN)
def test_every_round_is_that_of_the_loop(name):
    options, loop = AGAIN[name]
    for task in FEWER.get(name, SHORT if name in AT_TWO_LEVELS else TASKS):
        found = rounds_of(ROWS[name].build(task, **options))
        assert found == rounds_of_loop(task, loop(task), start=START.get(name))


def test_a_watermark_that_keeps_the_acceptance_is_its_loop_too():
    for task in SHORT:
        found = rounds_of(ROWS["watermarked"].build(task, keep="efficiency", gamma=1))
        assert found == rounds_of_loop(task, keyed(task, "efficiency", 1))


def test_the_halves_of_both_orders_average_to_the_pmf():
    for weights in product(range(4), repeat=3):
        if sum(weights):
            row = norm(weights)
            halves = zip(second_half(row, falling=False), second_half(row, falling=True), strict=True)
            assert [(a + b) / 2 for a, b in halves] == row
            assert point(best(row), 3) == second_half(point(best(row), 3), falling=True)
