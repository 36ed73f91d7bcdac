"""Edge and cloud, exact except after a timeout: then the edge commits its first draft unverified.

Not lossless: ``declared_law`` returns the law of the output. A round with drafts has a timeout with probability
``late``, whatever the drafts. After a timeout the committed token has the law q instead of p. So the first token of a
round has the law ``(1 - late) p + late q``, at total variation ``late TV(p, q)`` from p. Sending the request again
would be exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ..coupling import flip, positive_part
from ..edge_cloud.decoder import edge_cloud_decoder
from ..edge_cloud.link import Link, Service, in_memory
from ..edge_cloud.messages import Verify
from ..edge_cloud.modes import from_row
from ..edge_cloud.wire import decode
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..types import Algorithm, Decoder, Draws, Reduction, Task, Tokens


def build(task: Task, late: Any = Fraction(1, 4), gamma: int = 4) -> Decoder:
    """Return the decoder that drafts ``gamma`` tokens from q on the edge; ``late`` is the probability of a timeout.

    After a timeout the edge commits its first draft unverified. Raises ``ValueError`` for ``late`` outside [0, 1].
    """
    if not 0 <= late <= 1:
        raise ValueError(f"late is {late}, expected a probability")

    def link(draws: Draws, service: Service) -> Link:
        def send(text: str) -> Sequence[str]:
            request = decode(text)
            if isinstance(request, Verify) and request.draft:
                probability = parameter(late, from_row(request.rows[0]))
                if flip(draws, probability, ("late",)):
                    return ()
            return in_memory(service)(text)

        return send

    return edge_cloud_decoder(task, "sparse-q", constant(gamma), link=link, impatient=True)


def declared_law(task: Task, prompt: Tokens, late: Any = Fraction(1, 4), gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    A round with drafts has a timeout with probability ``late`` and then commits one token drawn from q. Otherwise it is
    a round of speculative sampling. The options are those of ``build``.
    """
    draft = draft_model(task)
    law: dict[Tokens, Any] = defaultdict(int)
    reached: dict[tuple[Tokens, int | None], Any] = {((), None): 1}
    for length in range(task.horizon):
        after: dict[tuple[Tokens, int | None], Any] = defaultdict(int)
        for (new, left), weight in reached.items():
            p, q = task.target(prompt + new), draft(prompt + new)
            share = parameter(late, p) if left is None else 0
            drafts = min(gamma, task.horizon - length - 1) if left is None else left
            excess = positive_part(p - q)
            parts = [(share * q + (1 - share) * excess, None), ((1 - share) * (p - excess), drafts - 1)]
            for masses, behind in parts if drafts else [(p, None)]:
                for token, mass in enumerate(masses.tolist()):
                    text = (*new, token)
                    ends = len(text) == task.horizon or token in task.eos
                    if mass > 0 and ends:
                        law[text] += weight * mass
                    elif mass > 0:
                        after[text, behind] += weight * mass
        reached = after
    return dict(law) if task.horizon else {(): 1}


ALGORITHM = Algorithm(
    name="edge-cloud-timeout",
    summary="as sparse-q, but if the cloud does not answer, the edge commits its first draft (declared bias)",
    build=build,
    claims=frozenset(),
    examples=({"late": Fraction(1, 4), "gamma": 1}, {"late": Fraction(1, 2), "gamma": 2}),
    paper="edge-cloud guide, Section 8 (timeout)",
    declared_law=declared_law,
    systems=("edge-cloud",),
    reductions=(
        Reduction("edge-cloud-sparse-q", "the probability of a late reply is 0", {"late": 0, "gamma": 2}, {"gamma": 2}),
    ),
)
