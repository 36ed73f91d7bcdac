"""Pre-drafted rounds: while the target verifies, the next draft is prepared for likely outcomes.

Speculative speculative decoding (Saguaro, Kumar et al. 2603.03251) prepares drafts for several outcomes of the current
round. An outcome is the number of accepted drafts and the token after them. PEARL (2408.11850) and DSI (2405.14105)
continue to draft after a block as if the whole block were accepted. A prepared draft is used if its outcome occurs;
otherwise a new draft is made. The output is exact: a draft after a text is drawn from q after exactly this text, at
whatever time it is drawn. A draft that is prepared for one outcome and used for another would be biased, because it
would be verified with rows from which it was not drawn.

Here one draft is prepared for each number i of accepted drafts. The token assumed after them is the most probable token
of q there that differs from draft i. A prepared draft has ``ahead`` tokens, a new one gamma.
"""

from __future__ import annotations

from collections.abc import Callable

from ..drafters.model import model_drafter
from ..lengths.constant import check_gamma
from ..models import draft_model
from ..pmf import checked_model, top_tokens
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draft, Draws, Reduction, Round, Site, State, Task, Tokens, chain, never
from ..verifiers.speculative_sampling import speculative_sampling

Prepared = tuple[tuple[Tokens, Tokens], ...]
"""Pairs (text, drafts prepared for the positions after that text)."""


class _Ahead:
    """A source of draws for a draft that is made in advance.

    It adds to the name (site) of each draw the number of drafts that are assumed to be accepted. So the draws of two
    such drafts have different names.
    """

    def __init__(self, draws: Draws, outcome: int) -> None:
        self._draws, self._outcome = draws, outcome

    def categorical(self, pmf: object, site: Site) -> int:
        return self._draws.categorical(pmf, ("ahead", self._outcome, *site))


def same_text(prepared: Tokens, text: Tokens) -> bool:
    """Return whether the text for which a draft was prepared equals the current text."""
    return prepared == text


def pre_drafting(task: Task, gamma: int, ahead: int, fits: Callable[[Tokens, Tokens], bool]) -> Decoder:
    """Return the decoder that uses a prepared draft if ``fits(text for which it was prepared, current text)``.

    A prepared draft has ``ahead`` tokens, a new one ``gamma``.
    """
    check_gamma(gamma, "gamma")
    check_gamma(ahead, "ahead")
    target, draft = checked_model(task.target, "target"), draft_model(task)
    drafter = model_drafter(draft)

    def propose(draws: Draws, state: State) -> Draft:
        most = state.remaining - 1
        for text, tokens in _prepared(state):
            if fits(text, state.tokens):
                kept = tokens[:most]
                return chain(kept, tuple(draft(state.tokens + kept[:i]) for i in range(len(kept))))
        return drafter.propose(draws, None, state.tokens, min(gamma, most), never)

    def prepare(draws: Draws, state: State, drafts: Tokens) -> Prepared:
        cache: Prepared = ()
        for accepted in range(len(drafts) + 1):
            text, left = state.tokens + drafts[:accepted], state.remaining - accepted - 1
            likely = [token for token in top_tokens(draft(text), 2) if token not in drafts[accepted : accepted + 1]]
            count = min(ahead, left - 1)
            if likely and count > 0:
                behind = (*text, likely[0])
                drawn = drafter.propose(_Ahead(draws, accepted), None, behind, count, never).tokens
                cache = (*cache, (behind, drawn))
        return cache

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        proposed = propose(draws, state)
        cache = prepare(draws, state, proposed.tokens)
        verified = speculative_sampling(draws, target, state.tokens, proposed)
        new, remaining = commit(verified.tokens, state.remaining, task.eos)
        tokens, accepted = state.tokens + new, min(verified.accepted, len(new))
        hit = tuple(entry for entry in cache if fits(entry[0], tokens))
        reached = min(verified.accepted + 1, len(proposed.tokens), len(new))
        return State(tokens, remaining, hit), Round(new, proposed.tokens, accepted, reached)

    return Decoder(lambda prompt: initial_state(prompt, task)._replace(drafter=()), step)  # a hit was drawn before


def build(task: Task, gamma: int = 4, ahead: int = 4) -> Decoder:
    """Return the decoder that drafts ``gamma`` tokens, or uses ``ahead`` tokens prepared for the current text."""
    return pre_drafting(task, gamma, ahead, same_text)


def _prepared(state: State) -> Prepared:
    assert isinstance(state.drafter, tuple)
    return state.drafter


ALGORITHM = Algorithm(
    name="pre-drafted",
    summary="speculative sampling; the next draft is prepared for likely outcomes, and used if one of them occurs",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1, "ahead": 1}, {"gamma": 2, "ahead": 1}),
    paper="arXiv 2603.03251; arXiv 2408.11850; arXiv 2405.14105",
    systems=("Saguaro", "PEARL", "DSI"),
    needs_training="how often an outcome is predicted, and the saved time",
    reductions=(Reduction("speculative-sampling", "no draft is prepared", {"gamma": 2, "ahead": 0}, {"gamma": 2}),),
)
