"""Several chains are verified independently and the one with most accepted drafts is kept: chosen by its coins."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Pmf, Site, Task, Tokens, Verified, chain
from specverify.reference.drafters.sequences import sequences_drafter
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


class _Of:
    def __init__(self, draws: Draws, which: int) -> None:
        self._draws, self._which = draws, which

    def categorical(self, pmf: Pmf, site: Site) -> int:
        return self._draws.categorical(pmf, (*site, "of chain", self._which))


def build(task: Task, sequences: int = 4, depth: int = 4, bits: int = 16) -> Decoder:
    """Speculative sampling of ``sequences`` chains, the first longest answer wins."""

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        chains = [chain(draft.tokens[k::sequences], draft.pmfs[k::sequences]) for k in range(sequences)]
        found = [speculative_sampling(_Of(draws, k), target, prefix, one) for k, one in enumerate(chains)]
        return max(found, key=lambda verified: verified.accepted)

    return tree_decoder(task, sequences_drafter((draft_model(task),) * sequences, depth), verify)


MUTANT = planted(
    "k-seq",
    "longest-of-several-chains",
    "keeps the chain that went best",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"sequences": 2, "depth": 1, "bits": 8},),
)
