"""Explain an acceptance test that depends on the drafts after the tested one, as with a mask that is not causal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from specverify.checks.explaining.readings import Models, Reading
from specverify.checks.explaining.wording import short
from specverify.reference import Tokens

NEAR = 1e-9
MOST_SHOWN = 3


def dependence_on_later_drafts(read: Sequence[tuple[Reading, Models]]) -> str:
    """Return a sentence about a draft whose acceptance probability depends on the drafts after it; "" if there is none.

    ``read`` has (reading, models) of each path; a reading describes the draws of the path as rounds. Only the first
    rounds of the paths are compared: a later round may depend on what earlier rounds rejected. Rounds with the same
    drafts must agree.
    """
    seen: dict[tuple[Tokens, Tokens], dict[Tokens, float]] = defaultdict(dict)
    shown: dict[tuple[Tokens, Tokens], tuple[float, str]] = {}
    for reading, models in read:
        one = next(iter(reading.rounds), None)
        if one is None or one.begin or one.structure:
            continue
        for i, probability in enumerate(one.accept):
            here, draft, later = one.text + one.drafts[:i], one.drafts[i], one.drafts[i + 1 :]
            key = one.text, one.drafts[: i + 1]
            if abs(seen[key].setdefault(later, probability) - probability) > NEAR:
                return ""
            place = next((at for role, number, at in one.places if (role, number) == ("test", i)), "")
            mass = float(one.q[i][draft])
            shown[key] = min(1.0, float(models.p(here)[draft]) / mass) if mass else 1.0, place
    for key, found in seen.items():
        by_next = _by_next(found)
        if by_next:
            return _sentence(key[1], by_next, *shown[key])
    return ""


def _by_next(found: dict[Tokens, float]) -> dict[int, float]:
    """Return next draft -> acceptance probability, if the probability depends on the next draft; else {}.

    ``found`` maps the drafts after the tested one to its acceptance probability. A probability of 0 or 1 shows nothing:
    no draw tests such a draft, so that the draw may be the test of another one.
    """
    result = {later[0]: probability for later, probability in found.items() if later and NEAR < probability < 1 - NEAR}
    return result if max(result.values(), default=0) - min(result.values(), default=0) > NEAR else {}


def _sentence(drafts: Tokens, by_next: dict[int, float], ought: float, place: str) -> str:
    """Return the sentence about the last of ``drafts``; ``by_next`` maps the next draft to the acceptance probability.

    ``ought`` is the right probability, and ``place`` the program line of the test.
    """
    shown = [
        f"u < {short(by_next[token])} if {'the next draft' if number == 0 else 'it'} is {token}"
        for number, token in enumerate(sorted(by_next)[:MOST_SHOWN])
    ]
    at = f" ({place})" if place else ""
    return (
        f"the test of draft {len(drafts)} ({drafts[-1]}) depends on the draft after it: {', '.join(shown)}; expected "
        f"u < {short(ought)} = min(1, p/q){at}"
    )
