"""Constraints: grammars, bad words, minimum lengths, budgets, biases, applied row by row and rolled back, or not."""

import numpy as np
import pytest

from specverify.testing import Made, Sizes, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

VOCABULARY, GAMMA = 3, 2


def no_repeat(new):
    """A token never follows itself."""
    return [not new or token != new[-1] for token in range(VOCABULARY)]


def bad_word(new):
    """2 never follows 0 1."""
    return [not (token == 2 and new[-2:] == (0, 1)) for token in range(VOCABULARY)]


def minimum(new):
    """Token 2, which ends a text for the reader, does not come before the third."""
    return [token != 2 or len(new) >= 2 for token in range(VOCABULARY)]


def budget(new):
    """Token 0 comes once at most."""
    return [token != 0 or 0 not in new for token in range(VOCABULARY)]


def bias(new):
    return np.exp([0.0, 1.0, -1.0])


CONSTRAINTS = {"grammar": no_repeat, "bad word": bad_word, "minimum": minimum, "budget": budget, "bias": bias}


def engine(allowed, *, rows=None, follows=None, masked_drafts=True, residual=None):
    """``rows(place)`` is whether that row of a round is masked; ``follows(new, drafts)`` what the mask has read."""

    def make(s):
        def masked(p, new):
            weights = np.array(p) * np.asarray(allowed(new), dtype=float)
            return weights / weights.sum() if weights.sum() > 0 else np.array(p)

        read = follows or (lambda new, extra, lost: new + extra)

        def decode():
            new, lost = (), ()
            while len(new) < s.horizon:
                drafts, qs = (), []
                for _ in range(GAMMA):
                    q = s.draft(s.prompt + new + drafts)
                    qs.append(masked(q, read(new, drafts, lost)) if masked_drafts else np.array(q))
                    drafts += (int(np.random.choice(s.vocabulary, p=qs[-1])),)
                kept = ()
                for place, token in enumerate(drafts):
                    raw = s.target(s.prompt + new + kept)
                    p = masked(raw, read(new, kept, lost)) if rows is None or rows(place) else np.array(raw)
                    if np.random.random() < p[token] / qs[place][token]:
                        kept += (token,)
                        continue
                    left = np.maximum((np.array(raw) if residual == "unmasked" else p) - qs[place], 0)
                    left = left if left.sum() > 0 else p
                    kept += (int(np.random.choice(s.vocabulary, p=left / left.sum())),)
                    lost = drafts[place:]
                    break
                else:
                    raw = s.target(s.prompt + new + kept)
                    p = masked(raw, read(new, kept, lost)) if rows is None or rows(GAMMA) else np.array(raw)
                    kept += (int(np.random.choice(s.vocabulary, p=p)),)
                    lost = ()
                new += kept
            return new[: s.horizon]

        return Made(decode, allowed=allowed)

    return make


def verdicts(make):
    # the smallest scenarios have two tokens, the masks three
    found = check_engine(
        make,
        sizes=Sizes(least_vocabulary=VOCABULARY),
        quick=True,
        on_fail=None,
        checks=["constraint_is_kept", "law_is_target"],
    )
    return {v.check: v for v in found}


def of_size(allowed, vocabulary):
    return lambda new: np.array(([*np.asarray(allowed(new), dtype=float)] + [1.0] * vocabulary)[:vocabulary])


def of_any_size(allowed):
    def make_of(make):
        def made(s):
            return make(of_size(allowed, s.vocabulary))(s)

        return made

    return make_of


@pytest.mark.thorough(keep=10)
@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("masked_drafts", [True, False])
def test_right_engines_hold(name, masked_drafts):
    made = of_any_size(CONSTRAINTS[name])(lambda allowed: engine(allowed, masked_drafts=masked_drafts))
    found = verdicts(made)
    assert {v.status for v in found.values()} == {"holds"}, found


WRONG = {
    "bonus not masked": {"rows": lambda place: place < GAMMA},
    "first row alone is masked": {"rows": lambda place: place == 0},
    "mask follows rejected drafts": {"follows": lambda new, extra, lost: new + lost + extra},
    "mask of the round's first row": {"follows": lambda new, extra, lost: new},
    "residual of the row without a mask": {"residual": "unmasked"},
    "no row is masked": {"rows": lambda place: False},
}


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("fault", WRONG)
def test_wrong_engines_are_refuted(fault):
    found = verdicts(of_any_size(no_repeat)(lambda allowed: engine(allowed, **WRONG[fault])))
    assert found["law_is_target"].status == "refuted"
    assert found["constraint_is_kept"].status == "refuted"
    assert "which the constraint forbids after" in found["constraint_is_kept"].counterexample.fault


def behind_marker(new):
    """After token 1 token 0 comes at once, and never again."""
    after = new[new.index(1) + 1 :] if 1 in new else None
    return [token == 0 if after == () else token != 0 or after is None for token in range(VOCABULARY)]


@pytest.mark.parametrize(("late", "status"), [(False, "holds"), (True, "refuted")])
def test_a_grammar_that_advances_a_token_late_is_refuted_in_longer_texts(late, status):
    """The mask of the round after the marker has not read the tokens that were accepted behind the marker."""

    def make(s):
        allowed = of_size(behind_marker, s.vocabulary)

        def decode():
            new, read = (), ()
            while len(new) < s.horizon:
                start = new
                for _ in range(2):
                    row = np.array(s.target(s.prompt + new)) * allowed(read + new[len(start) :])
                    row = row if row.sum() > 0 else np.array(s.target(s.prompt + new))
                    new += (int(np.random.choice(s.vocabulary, p=row / row.sum())),)
                read = new[: new.index(1) + 1] if late and 1 in new[len(start) : -1] else new
            return new[: s.horizon]

        return Made(decode, allowed=allowed)

    found = check_engine(make, quick=True, on_fail=None, checks=["constraint_is_kept"])
    assert {v.status for v in found} == {status}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("last", "status"), [(24, "refuted"), (99, "holds")])
def test_a_mask_that_is_lost_in_a_long_text_is_refuted(last, status):
    def follows(new, extra, lost):
        return () if len(new) > last else new + extra

    make = of_any_size(no_repeat)(lambda allowed: engine(allowed, follows=follows))
    (verdict,) = check_engine(make, quick=True, on_fail=None, checks=["constraint_is_kept"])
    assert verdict.status == status


@pytest.mark.parametrize(("left", "status"), [(12, "holds"), (0, "unusable")])
def test_an_engine_that_raises_where_no_token_is_left_is_not_wrong(left, status):
    def make(s):
        def decode():
            new = ()
            while len(new) < s.horizon:
                if len(new) >= left:
                    raise RuntimeError("no token is left")
                row = np.array(s.target(s.prompt + new)) * of_size(no_repeat, s.vocabulary)(new)
                new += (int(np.random.choice(s.vocabulary, p=row / row.sum())),)
            return new

        return Made(decode, allowed=of_size(no_repeat, s.vocabulary))

    found = check_engine(make, quick=True, on_fail=None, checks=["constraint_is_kept"])
    assert {verdict.status for verdict in found} == {status}


def in_place(new, size):
    """Each place of the text forbids one token."""
    return np.array([float(token != (2 * len(new) + 1) % size) for token in range(size)])


@pytest.mark.parametrize("returned", ["logprobs", ""])
def test_an_engine_that_divides_by_zero_where_no_token_is_left_is_not_wrong_by_its_values_or_pairs(returned):
    def make(s):
        def decode():
            new, logprobs = (), []
            while len(new) < s.horizon:
                row = np.array(s.target(s.prompt + new)) * in_place(new, s.vocabulary)
                if not row.any():
                    raise ZeroDivisionError
                row /= row.sum()
                new += (int(np.random.choice(s.vocabulary, p=row)),)
                logprobs.append(float(np.log(row[new[-1]])))
            return {"tokens": new, "logprobs": logprobs} if returned else new

        return Made(decode, allowed=lambda new: in_place(new, s.vocabulary))

    of_values = {"returns": {"logprobs": "processed"}, "checks": ["values_match"]}
    of_pairs = {"promises": ("seed",), "checks": ["seed_repeats"]}
    found = check_engine(make, quick=True, on_fail=None, **(of_values if returned else of_pairs))
    assert {verdict.status for verdict in found} == {"holds"}


@pytest.mark.parametrize(("cut", "status"), [(False, "holds"), (True, "refuted")])
def test_drafts_that_are_cut_at_a_forbidden_token_are_refuted(cut, status):
    """A draft that the mask forbids has p = 0 and is rejected; cut off, its place gets a token from p itself."""

    def make(s):
        def masked(model, new):
            row = np.array(model(s.prompt + new)) * in_place(new, s.vocabulary)
            return row / row.sum()

        def decode():
            new = ()
            while len(new) < s.horizon:
                q, p = np.array(s.draft(s.prompt + new)), masked(s.target, new)
                draft = int(np.random.choice(s.vocabulary, p=q))
                if cut and p[draft] == 0:
                    new += (int(np.random.choice(s.vocabulary, p=p)),)
                elif np.random.random() * q[draft] < p[draft]:
                    new += (draft,)
                else:
                    left = np.maximum(p - q, 0)
                    new += (int(np.random.choice(s.vocabulary, p=left / left.sum())),)
            return new

        return Made(decode, allowed=lambda new: in_place(new, s.vocabulary))

    (found,) = check_engine(make, quick=True, on_fail=None, checks=["law_is_target"])
    assert found.status == status


class Matcher:
    """The state of a grammar: the emitted tokens that it has accepted."""

    def __init__(self, allowed, *, by_all):
        self.allowed, self.by_all, self.read = allowed, by_all, ()

    def masks(self, drafts):
        """Return the mask of each draft up to the first that is refused, and of the bonus if none is."""
        result, taken = [self.allowed(self.read)], 0
        while taken < len(drafts) and result[-1][drafts[taken]]:
            taken += 1
            result.append(self.allowed(self.read + drafts[:taken]))
        if self.by_all:  # the matcher has read ``taken`` drafts, and is rolled back by all
            self.read = self.read[: max(len(self.read) + taken - len(drafts), 0)]
        return result

    def accept(self, tokens):
        for token in tokens:
            self.read += (token,) if self.allowed(self.read)[token] else ()


def one_round(s, text, gamma, matcher):
    """Return the tokens that one round adds to ``text``; the drafts are not masked."""
    qs, drafts, kept = [], (), ()
    for _ in range(gamma):
        qs.append(s.draft(text + drafts))
        drafts += (int(np.random.choice(s.vocabulary, p=qs[-1])),)
    for place, mask in enumerate(matcher.masks(drafts)):
        p = s.target(text + kept) * mask
        p = p / p.sum()
        if place == gamma:
            return (*kept, int(np.random.choice(s.vocabulary, p=p)))
        if np.random.random() * qs[place][drafts[place]] < p[drafts[place]]:
            kept += (drafts[place],)
            continue
        left = np.maximum(p - qs[place], 0)
        return (*kept, int(np.random.choice(s.vocabulary, p=left / left.sum())))
    return kept


def after_zero_even(vocabulary):
    """No token follows itself, and after token 0 only even ones follow."""

    def allowed(new):
        last = new[-1] if new else None
        return [token != last and (last != 0 or token % 2 == 0 or vocabulary < 3) for token in range(vocabulary)]

    return allowed


@pytest.mark.parametrize(("by_all", "status"), [(False, "holds"), (True, "refuted")])
def test_a_matcher_that_is_rolled_back_by_refused_drafts_too_is_refuted(by_all, status):
    """It loses emitted tokens. Its masks are wrong two tokens later: only texts of four tokens or more show it."""

    def make(s):
        allowed = of_size(after_zero_even(s.vocabulary), s.vocabulary)

        def decode():
            new, matcher = (), Matcher(allowed, by_all=by_all)
            while len(new) < s.horizon:
                added = one_round(s, s.prompt + new, min(GAMMA, s.horizon - len(new) - 1), matcher)
                matcher.accept(added)
                new += added
            return new

        return Made(decode, allowed=allowed)

    assert verdicts(make)["law_is_target"].status == status
