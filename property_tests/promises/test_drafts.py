"""Draft-side faults that the output does not show."""

import numpy as np
import pytest

from specverify.testing import check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

CHECK = "drafts_follow_the_text"


def engine(read, gamma=2, verify=None):
    """``read(committed, drafts, before)`` is what the draft model is asked about; ``before`` the last round's text."""

    def make(s):
        def decode():
            text, before = s.prompt, s.prompt
            while len(text) < len(s.prompt) + s.horizon:
                drafts = ()
                for _ in range(gamma):
                    drafts += (int(np.random.choice(s.vocabulary, p=s.draft(read(text, drafts, before)))),)
                before = text + drafts
                for token in drafts:
                    p, q = s.target(text), s.draft(read(text, (), before))
                    if q[token] > 0 and np.random.random() < p[token] / q[token]:
                        text += (token,)
                        continue
                    left = np.maximum(p - q, 0)
                    left = left if q[token] > 0 and left.sum() > 0 else p
                    text += (int(np.random.choice(s.vocabulary, p=left / left.sum())),)
                    break
                else:
                    text += (int(np.random.choice(s.vocabulary, p=s.target(text))),)
            return text[len(s.prompt) : len(s.prompt) + s.horizon]

        return decode

    return make


WRONG = {
    "lacks the last token": lambda text, drafts, before: text[:-1] + drafts,
    "keeps rejected drafts": lambda text, drafts, before: (
        before[: len(text)] + text[len(before) :] + drafts if len(before) > len(text) else before + drafts
    ),
    "skips every third token": lambda text, drafts, before: tuple(t for i, t in enumerate(text) if i % 3 != 2) + drafts,
    "forgets the prompt": lambda text, drafts, before: (text[3:] or text) + drafts,
}
RIGHT = {gamma: engine(lambda text, drafts, before: text + drafts, gamma) for gamma in (1, 2, 3, 5)}


def found(make):
    (verdict,) = (
        v for v in check_engine(make, promises={"drafts"}, checks=[CHECK], on_fail=None, quick=True) if v.check == CHECK
    )
    return verdict


@pytest.mark.parametrize("fault", WRONG)
def test_drafts_of_another_text_are_refuted_where_the_draft_model_is_promised(fault):
    verdict = found(engine(WRONG[fault]))
    assert verdict.status == "refuted"
    assert "made from another text" in verdict.counterexample.fault


def prefix_cached(s, key, gamma=2):
    """Serve prompts in turn; rows of the draft model at the edges of blocks of four are kept under ``key(text)``."""
    store = {}

    def row(text):
        return store.setdefault(key(text), s.draft(text)) if len(text) % 4 == 1 else s.draft(text)

    def decode(prompt):
        return engine(lambda text, drafts, before: text + drafts, gamma)(s._replace(prompt=tuple(prompt), draft=row))()

    return decode


KEYS = {
    "the text": lambda text: text,
    "the blocks before the last token": lambda text: text[:-1],
    "the last block": lambda text: text[-4:],
    "the length": len,
}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("key", KEYS)
def test_a_draft_row_that_is_cached_for_another_request_is_refuted(key):
    verdict = found(lambda s: prefix_cached(s, KEYS[key]))
    assert verdict.status == ("holds" if key == "the text" else "refuted"), verdict
    assert key == "the text" or "of request" in "".join(verdict.counterexample.let)


def kept_for_the_next_turn(s, size, unread):
    """Serve conversations; blocks of ``size`` tokens are kept for drafts, with 0 for the last ``unread`` tokens."""
    blocks = {}

    def decode(prompt):
        held = max((n for n in range(0, len(prompt), size) if prompt[:n] in blocks), default=0)
        seen = blocks.get(prompt[:held], ())
        read = lambda text, drafts, before: seen + (text + drafts)[held:]  # noqa: E731
        new = engine(read, 3)(s._replace(prompt=prompt))()
        text = prompt + new[:-1]
        kept = text[: len(text) - unread] + (0,) * unread
        blocks.update({text[:n]: kept[:n] for n in range(size, len(text) + 1, size)})
        return new

    return lambda prompt: decode(tuple(prompt))


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("unread", [0, 1])
def test_a_block_that_the_draft_model_has_not_read_whole_is_refuted(size, unread):
    assert found(lambda s: kept_for_the_next_turn(s, size, unread)).status == ("refuted" if unread else "holds")


def trimmed(extra):
    """Return a factory of chains whose draft cache loses ``extra`` tokens at each rejection, for good."""

    def make(s):
        def decode():
            text, lost = s.prompt, 0
            while len(text) < len(s.prompt) + s.horizon:
                seen = text[: max(len(text) - 1 - lost, 1)] + text[-1:] if lost else text
                drafts = ()
                for _ in range(3):
                    drafts += (int(np.random.choice(s.vocabulary, p=s.draft(seen + drafts))),)
                for token in drafts:
                    row = s.target(text)
                    if row[token] < 1:
                        lost += extra
                        break
                    text += (token,)
                text += (int(np.random.choice(s.vocabulary, p=s.target(text))),)
            return text[len(s.prompt) : len(s.prompt) + s.horizon]

        return decode

    return make


@pytest.mark.parametrize(("extra", "status"), [(0, "holds"), (2, "refuted")])
def test_a_draft_cache_that_loses_tokens_after_a_rejection_is_refuted(extra, status):
    verdict = found(trimmed(extra))
    assert verdict.status == status
    assert extra == 0 or "made from another text" in verdict.counterexample.fault


def test_a_draft_model_with_fewer_positions_than_the_text_does_not_hold():
    verdict = found(engine(lambda text, drafts, before: (text + drafts)[:128]))
    assert verdict.status == "unknown"
    assert "tokens the draft model is not called with the newest text" in verdict.statement


def test_drafts_far_behind_the_end_are_no_fault(monkeypatch):
    monkeypatch.setattr("specverify.promises.drafts._BEYOND", 2)
    assert found(engine(lambda text, drafts, before: text + drafts, gamma=9)).status == "holds"


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("gamma", RIGHT)
def test_right_chains_hold(gamma):
    assert found(RIGHT[gamma]).status == "holds"


def test_drafts_for_a_place_that_is_decided_are_no_pass():
    verdict = found(engine(lambda text, drafts, before: text[:-1], gamma=1))
    assert verdict.status == "unknown"
    assert "decided already" in verdict.statement


def test_an_engine_that_never_asks_the_draft_model_is_unknown():
    def make(s):
        return lambda: [int(np.random.choice(s.vocabulary, p=s.target(s.prompt)))]

    assert found(make).status == "unknown"


def test_the_verdict_names_what_was_not_examined():
    verdicts = check_engine(lambda: [int(np.random.choice(2))], {(0,): 0.5, (1,): 0.5}, checks=["law_is_target"])
    assert "acceptance were not examined" in verdicts[0].figures["notes"][0]
