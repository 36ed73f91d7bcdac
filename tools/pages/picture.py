"""The picture of README: the law of two tokens from a right decoder and from one with a bug, beside the target's.

Run ``python -m tools.pages.picture docs/assets/laws.svg``. Every height is a probability that was enumerated.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from reference import ALGORITHMS, Tokens
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law, total_variation
from specverify.report.systems import PROMPT, pair_task

PANELS = {
    "speculative-sampling": "A rejected draft is replaced from the residual",
    "resample-from-target": "A rejected draft is replaced from p",
}
BLUE, ORANGE = "#0072b2", "#e69f00"
"""Of Okabe and Ito's palette, which colour-blind readers tell apart."""
WIDTH, HEIGHT, PANEL, TOP, BASE = 760, 262, 360, 84, 222
SCALE = 440
"""Pixels for a probability of 1."""


def bar(x: float, mass: Fraction, colour: str, said: str) -> str:
    """Return an SVG bar with its top at the probability ``mass``; the tooltip is ``said``."""
    height = float(mass) * SCALE
    shape = f'x="{x:.1f}" y="{BASE - height:.1f}" width="13" height="{height:.1f}" fill="{colour}"'
    return f"<rect {shape}><title>{said} {mass}</title></rect>"


def panel(
    left: int, title: str, law: Mapping[Tokens, Fraction], target: Mapping[Tokens, Fraction], off: Fraction
) -> str:
    """Return the SVG panel of one decoder: for each text a bar of its probability beside that of the target."""
    verdict = f"refuted: total variation {off} from the target" if off else "holds: the laws are equal, as rationals"
    drawn = [
        f'<text x="{left}" y="24" class="title">{title}</text>',
        f'<text x="{left}" y="44">{"✘" if off else "✔"} {verdict}</text>',
        f'<line x1="{left}" x2="{left + PANEL - 24}" y1="{BASE}" y2="{BASE}" stroke="#555"/>',
    ]
    for number, text in enumerate(sorted(target)):
        x = left + 4 + number * 37
        drawn.append(bar(x, target[text], BLUE, "target"))
        drawn.append(bar(x + 14, law.get(text, Fraction(0)), ORANGE, "decoder"))
        drawn.append(f'<text x="{x + 13.5}" y="{BASE + 16}" class="middle">{" ".join(map(str, text))}</text>')
    return "\n".join(drawn)


def picture() -> str:
    """Return the SVG."""
    rows = {row.name: row for row in ALGORITHMS}
    task = pair_task()._replace(horizon=2)
    target, panels = target_law(task, PROMPT), []
    for number, (name, title) in enumerate(PANELS.items()):
        law = decoder_law(rows[name].build(task, **rows[name].examples[0]), PROMPT)
        off = total_variation(law, target).low
        panels.append(panel(16 + number * (PANEL + 12), title, law.probabilities, target, off))
    legend = [
        f'<rect x="16" y="56" width="11" height="11" fill="{BLUE}"/><text x="32" y="66">the target alone</text>',
        f'<rect x="150" y="56" width="11" height="11" fill="{ORANGE}"/><text x="166" y="66">with speculation</text>',
        f'<text x="16" y="{HEIGHT - 6}">the two new tokens; a bar is the probability of that text</text>',
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            "<title>The law of two tokens: equal to the target's with the right rule, and not with a wrong one</title>",
            "<style>text { font: 12px sans-serif; fill: #222 } .middle { text-anchor: middle }</style>",
            "<style>.title { font-weight: bold; font-size: 14px }</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *legend,
            *panels,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), "utf-8")
