"""Is a divergence from greedy decoding a near-tie, or a defect? Decided by float64 and by roundings that are measured.

Two kernels compute the row before a token: target-only decoding feeds one token, a verifying pass feeds gamma + 1. In a
low precision they round differently, so where two logits nearly tie their argmaxes may differ, and neither is wrong.

``measure`` teacher-forces the target's own greedy output through correct passes of every width, and through a float64
copy of the same weights. For a row of logits the *spread* of an error e is max e - min e: if a kernel prefers token x
to token y, the float64 logit of x is below that of y by at most e_x - e_y, so by at most the spread. Measured are

* ``single``, of every row: the spread of the one-token kernel's error against float64;
* ``verify``, of every row: the largest such spread of the verifying passes;
* ``between``, of every text: the largest spread of the difference of the two kernels anywhere in it, because a row also
  depends on what passes of other widths have left in the cache. It may be 0.

A divergence at a position, a after the plain decoder and b after the speculative one, is a near-tie if all three hold:
a lies within ``single`` of the float64 maximum, b lies within ``verify`` of it, and the one-token kernel itself prefers
a to b by no more than ``between``. Otherwise it is refuted. Where the plain output is not the one that was measured,
the maxima over all rows are taken. Nothing that is measured runs through the decoder under test: its mistakes cannot
widen what excuses them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from reference import Tokens
from test_support.gpu.batched_speculation import forced_logits
from test_support.gpu.batches import tell
from test_support.gpu.cached_models import whole_logits
from test_support.gpu.tiny_models import in_float64

GAMMAS = range(1, 9)


class Rounding(NamedTuple):
    """Error spreads, in logits: of one row, or the largest of many."""

    single: float
    verify: float
    between: float


class Measured(NamedTuple):
    """What was measured on a model: the largest spreads, and those of every row by the tokens before it."""

    largest: Rounding
    rows: dict[Tokens, Rounding]

    def before(self, tokens: Tokens) -> Rounding:
        """Return the spreads of the row that follows ``tokens``."""
        return self.rows.get(tokens, self.largest)


class Divergence(NamedTuple):
    """The first position at which a speculative output is not the plain one, and what is known there."""

    position: int
    plain: int
    speculative: int
    plain_margin: float
    """How far the plain decoder's token is below the float64 maximum."""
    speculative_margin: float
    gap: float
    """By how much the one-token kernel prefers the plain token to the other."""
    rounding: Rounding

    @property
    def near_tie(self) -> bool:
        """Whether rounding explains the divergence."""
        within = self.plain_margin <= self.rounding.single and self.speculative_margin <= self.rounding.verify
        return within and self.gap <= self.rounding.between

    def __str__(self) -> str:
        verdict = "near-tie" if self.near_tie else "REFUTED"
        return (
            f"{verdict} at new token {self.position}: {self.plain} plain, {self.speculative} speculative; "
            f"float64 margins {self.plain_margin:.4f} (rounding {self.rounding.single:.4f}), "
            f"{self.speculative_margin:.4f} ({self.rounding.verify:.4f}); "
            f"gap {self.gap:.4f} (between kernels {self.rounding.between:.4f})"
        )


def spread(errors: torch.Tensor) -> torch.Tensor:
    """Return max e - min e of every row ``[..., vocabulary]``, which must be finite."""
    assert bool(errors.isfinite().all())
    return (errors.amax(dim=-1) - errors.amin(dim=-1)).cpu()


def measure(model: Any, texts: Iterable[tuple[Tokens, Tokens]], *, batched: bool = False) -> Measured:
    """Measure both kernels on (prompt, greedy output) pairs; ``batched`` verifies all in one left-padded batch."""
    texts = list(texts)
    groups = [texts] if batched else [[text] for text in texts]
    rows: dict[Tokens, Rounding] = {}
    for group in groups:
        prompts, outputs = [prompt for prompt, _ in group], [new for _, new in group]
        exact = torch.stack([whole_logits(in_float64(model), *text) for text in group])
        single = torch.cat([forced_logits(model, [prompt], [new], 0) for prompt, new in group]).double()
        passes = [forced_logits(model, prompts, outputs, gamma).double() for gamma in GAMMAS]
        spreads = (
            spread(single - exact),
            torch.stack([spread(found - exact) for found in passes]).amax(dim=0),
            torch.stack([spread(found - single) for found in passes]).amax(dim=0),
        )
        for index, (prompt, new) in enumerate(group):
            for position in range(len(new)):
                alone, verify = (float(values[index, position]) for values in spreads[:2])
                rows[prompt + new[:position]] = Rounding(alone, verify, float(spreads[2][index].max()))
    return Measured(Rounding(*(max(values) for values in zip(*rows.values(), strict=True))), rows)


def classify(model: Any, prompt: Tokens, plain: Tokens, speculative: Tokens, rounding: Measured) -> Divergence | None:
    """Return None if the outputs are equal, else the first divergence.

    Outputs of different lengths diverge where the shorter ends; the token that is missing there is -1 and lies
    infinitely far below the maximum: no rounding explains an end.
    """
    if plain == speculative:
        return None
    pairs = zip((*plain, -1), (*speculative, -1), strict=False)
    position, (a, b) = next((index, pair) for index, pair in enumerate(pairs) if pair[0] != pair[1])
    common = (*plain[:position], 0)
    exact = whole_logits(in_float64(model), prompt, common)[position]
    row = forced_logits(model, [prompt], [common], 0)[0, position].double()

    def below(token: int) -> float:
        return float(exact.max() - exact[token]) if 0 <= token < len(exact) else float("inf")

    gap = float(row[a] - row[b]) if min(a, b) >= 0 else float("inf")
    return Divergence(position, a, b, below(a), below(b), gap, rounding.before(prompt + plain[:position]))


class Ledger:
    """The results of a test: its runs, its near-ties, and the refuted divergences."""

    def __init__(self, name: str, rounding: Measured | None = None) -> None:
        """Start without runs. ``name`` describes them, and ``rounding`` is what divergences are compared with."""
        self.name = name
        self.rounding = rounding
        self.runs = 0
        self.drafted = 0
        self.accepted = 0
        self.divergences: list[tuple[Divergence, str]] = []

    def add(self, divergence: Divergence | None, what: object) -> None:
        """Count one run; ``what`` describes it in the message if it is refuted."""
        self.runs += 1
        if divergence is not None:
            self.divergences.append((divergence, str(what)))

    @property
    def refuted(self) -> list[str]:
        """The divergences that rounding does not explain."""
        return [
            f"{divergence} ({self.name}, {what})" for divergence, what in self.divergences if not divergence.near_tie
        ]

    @property
    def ties(self) -> Counter[str]:
        """Each distinct near-tie, and how many runs ended in it."""
        return Counter(f"{self.name}: {divergence}" for divergence, _ in self.divergences if divergence.near_tie)

    def close(self, record: Callable[[dict[str, Any]], None], dtype: torch.dtype) -> None:
        """Add counts and near-ties to the summary, print them, and fail if anything is refuted."""
        counts = {"runs": self.runs, "near-tie": sum(self.ties.values()), "refuted": len(self.refuted)}
        name = str(dtype).removeprefix("torch.")
        rounding = None if self.rounding is None else list(self.rounding.largest)
        record({"dtype": name, "counts": counts, "ties": dict(self.ties), "rounding": rounding})
        tell(f"{self.name} {name}: {counts}, largest {rounding}")
        for line, runs in self.ties.items():
            tell(f"{runs} x {line}")
        assert self.refuted == []
