"""Ways to draw a token from weights with torch by noise: the token whose clock rings first."""

from __future__ import annotations

import torch

from test_support.idioms.idiom import token


def noise_of(weights):
    return torch.empty_like(weights).exponential_()


@token("torch", wrong=("w / noise_of(w)", "w**3 / noise_of(w)"))
def weights_over_exponentials(w):
    """Weights divided by exponentials."""
    return (w / noise_of(w)).argmax()


@token("torch", wrong=("w / w.sum()", "w.sqrt() / w.sum()"))
def weights_divided_in_place(w):
    """The weights are divided in place."""
    probs = w / w.sum()
    return probs.div_(noise_of(probs)).argmax(dim=-1).view(-1)


@token("torch", wrong=("w * (1.0 / q)", "w * (1.0 / q) ** 3"))
def times_the_reciprocal(w):
    """The weights are multiplied by the reciprocal of the noise."""
    q = noise_of(w)
    return (w * (1.0 / q)).argmax()


@token("torch", wrong=(".reciprocal_()", ".square_()"))
def reciprocal_in_place(w):
    """The reciprocal of the noise is computed in place."""
    return noise_of(w).reciprocal_().mul(w).argmax(-1)


@token("torch", wrong=("max(dim=-1).indices", "min(dim=-1).indices"))
def indices_of_max(w):
    """``max`` of a dimension returns the index with the value."""
    return (w / noise_of(w)).max(dim=-1).indices


@token("torch", wrong=("_, best = torch.max(", "best, _ = torch.min(0 * "))
def pair_of_max(w):
    """``torch.max`` as a pair."""
    _, best = torch.max((w / noise_of(w))[None], -1)
    return best[0]


@token("torch", wrong=("descending=True", "descending=False"))
def sorted_descending(w):
    """The first of a descending order."""
    return (w / noise_of(w)).sort(descending=True)[1][0]


@token("torch", wrong=("topk(1).indices", "topk(2).indices[1:]"))
def top_one(w):
    """The top one."""
    return (w / noise_of(w)).topk(1).indices[0]


@token("torch", wrong=("order[0]", "order[1]"))
def argsort(w):
    """The first of ``argsort`` of negative scores."""
    order = torch.argsort(-(w / noise_of(w)))
    return order[0]


@token("torch", wrong=("possible[race.argmin()]", "possible[race.argmax()]"))
def smallest_time(w):
    """The smallest time of the possible tokens."""
    possible = w.nonzero().view(-1)
    race = noise_of(w)[possible] / w[possible]
    return possible[race.argmin()]


@token("torch", wrong=("[possible] / w[possible]).kthvalue", "[possible] * w[possible]).kthvalue"))
def kth_value(w):
    """``kthvalue``: the smallest time."""
    possible = w.nonzero().view(-1)
    return possible[(noise_of(w)[possible] / w[possible]).kthvalue(1).indices]


@token("torch", wrong=("clamp_min(1e-20)", "clamp_min(0.5)"))
def clamped_noise(w):
    """Noise clamped above 0."""
    return (w / noise_of(w).clamp_min(1e-20)).argmax()


@token("torch", wrong=("+ 1e-20", "+ 1.0"))
def noise_and_a_little(w):
    """A small number is added to the noise."""
    return w.div(noise_of(w) + 1e-20).argmax()


@token("torch", wrong=("noise_of(w).log_().neg_()", "noise_of(w).neg_()"))
def logarithm_of_noise_in_place(w):
    """Gumbel noise computed from exponentials in place."""
    return (w.log() + noise_of(w).log_().neg_()).argmax()


@token("torch", wrong=("w.log() - ", "w.log().exp() - "))
def logits_minus_log_noise(w):
    """Log-probabilities minus the logarithm of the noise."""
    return torch.argmax(w.log() - noise_of(w).log(), dim=-1)


@token("torch", wrong=("-torch.log(-torch.log(u))", "torch.log(u)"))
def gumbel_of_a_clamped_uniform(w):
    """Gumbel noise of uniforms clamped away from 0 and 1."""
    u = torch.rand_like(w).clamp(1e-30, 1 - 2**-53)
    return (torch.log(w) + -torch.log(-torch.log(u))).argmax()


@token("torch", wrong=("-torch.log(u + eps) + eps", "-torch.log(u + eps) + 1.0"))
def gumbel_with_two_epsilons(w):
    """An epsilon inside each logarithm."""
    eps, u = 1e-20, torch.rand_like(w)
    return (torch.log(w) + -torch.log(-torch.log(u + eps) + eps)).argmax()


@token("torch", wrong=("Gumbel(zero, 1.0)", "Gumbel(zero, 4.0)"))
def gumbel_distribution(w):
    """``distributions.Gumbel``."""
    zero = torch.zeros_like(w)
    return (w.log() + torch.distributions.Gumbel(zero, 1.0).sample()).argmax()


@token("torch", wrong=("Exponential(torch.ones_like(w))", "Exponential(torch.ones_like(w) + 4 * w)"))
def exponential_distribution(w):
    """``distributions.Exponential``."""
    return (w / torch.distributions.Exponential(torch.ones_like(w)).sample()).argmax()


@token("torch", wrong=("w.log()", "w.log() / 4"))
def gumbel_softmax(w):
    """``gumbel_softmax`` returns a row that is 1 at the token."""
    scores = torch.where(w > 0, w.log(), -1e30)
    return torch.nn.functional.gumbel_softmax(scores, hard=True).argmax()


@token("torch", wrong=("** (1 / w)", "** w"))
def powers_of_uniforms(w):
    """Uniforms to the power of reciprocal weights; impossible tokens are masked."""
    return torch.where(w > 0, torch.rand_like(w) ** (1 / w), -1.0).argmax()


@token("torch", wrong=("torch.rand_like(w).clamp_min_(1e-30).log() / w", "torch.rand_like(w).clamp_min_(1e-30) / w"))
def logarithms_over_weights(w):
    """The logarithm of a uniform divided by its weight; the largest of the possible tokens."""
    score = torch.rand_like(w).clamp_min_(1e-30).log() / w
    return score.masked_fill(w == 0, -torch.inf).argmax()


@token("torch", wrong=("torch.where(w > 0, race, -1.0)", "torch.where(w > 0, -race, -torch.inf)"))
def impossible_ones_marked(w):
    """Impossible tokens are masked after the noise is added."""
    race = w / noise_of(w)
    return torch.where(w > 0, race, -1.0).argmax()


@token("torch", wrong=("(race == race.max()).nonzero()", "(race == race.min()).nonzero()"))
def equal_to_the_largest(w):
    """The index that is equal to the largest."""
    race = w.log() - noise_of(w).log()
    return (race == race.max()).nonzero()[0, 0]


@token("torch", wrong=("race >= race.amax(-1, keepdim=True)", "race <= race.amax(-1, keepdim=True)"))
def one_hot_of_the_largest(w):
    """A one-hot row of the entries that are not below the largest."""
    race = w / noise_of(w)
    hot = (race >= race.amax(-1, keepdim=True)).int()
    return (hot * torch.arange(len(w))).max()


@token("torch", wrong=("indices[best]", "indices[0]"))
def blocks_and_their_best(w):
    """The best of each block, and the best of these: a vocabulary in two parts."""
    padded = torch.nn.functional.pad(w / w.sum(), (0, len(w) % 2))
    race = (padded / noise_of(padded)).view(2, -1)
    values, indices = race.max(dim=-1)
    best = values.argmax()
    return int(best) * race.shape[1] + indices[best].item()


@token("torch", wrong=("if value > best", "if value < best"))
def running_best(w):
    """The best so far, token by token."""
    race = (w / noise_of(w)).tolist()
    where, best = 0, -1.0
    for i, value in enumerate(race):
        if value > best:
            where, best = i, value
    return where


@token("torch", wrong=("w.clamp_min(1e-300)", "w.clamp_min(0.5)"))
def second_best_unless_possible(w):
    """The best two are sorted, and the better one that is possible is taken."""
    u = torch.rand(len(w), dtype=torch.float64)
    order = (u.clamp(1e-300, 1 - 2**-53).log() / w.clamp_min(1e-300)).topk(2).indices
    return next(int(i) for i in order if w[i] > 0)


@token("torch", wrong=("softmax(score, -1)", "softmax(-score, -1)"))
def softmax_of_noisy_scores(w):
    """The largest entry of a softmax of the noisy scores."""
    score = torch.where(w > 0, w, 1e-300).log() - noise_of(w).log()
    return torch.softmax(score, -1).argmax()


@token("torch", wrong=("(w.log() / 0.7 + gumbel * 0.7", "(w.log() / 0.7 + gumbel * 0.1"))
def scaled_scores(w):
    """Scores and noise scaled by one factor."""
    gumbel = -noise_of(w).log()
    return ((w.log() / 0.7 + gumbel * 0.7 / 0.49) * 2.5).argmax()


@token("torch", wrong=("w.div(noise[0])", "w.div(noise[0].sqrt())"))
def row_by_its_generator(w):
    """A row of a buffer is filled by a generator of the request."""
    g = torch.Generator().manual_seed(int(torch.empty((), dtype=torch.int64).random_(2**31)))
    noise = torch.empty((2, len(w)), dtype=w.dtype)
    noise.exponential_()
    noise[0].exponential_(generator=g)
    return w.div(noise[0]).argmax()


@token("torch", wrong=("probs[None] / q", "probs[None].exp() / q"))
def matrix_of_one_row(w):
    """A batch of one."""
    probs = w / w.sum()
    q = torch.empty((1, len(w)), dtype=w.dtype)
    q.exponential_(1.0)
    return (probs[None] / q).argmax(dim=-1, keepdim=True).squeeze(-1).item()


@token("torch", wrong=("probs / noise.float()", "probs / noise.float() ** 2"))
def noise_in_double(w):
    """Noise of float64 for weights of float32."""
    probs, noise = (w / w.sum()).float(), torch.empty(len(w), dtype=torch.float64).exponential_()
    return (probs / noise.float()).argmax()


@token("torch", wrong=("possible[torch.argmax(w[possible] / noise)]", "torch.argmax(w[possible] / noise)"))
def possible_tokens_alone(w):
    """Noise for the possible tokens only."""
    possible = torch.nonzero(w, as_tuple=True)[0]
    noise = torch.empty(len(possible)).exponential_()
    return possible[torch.argmax(w[possible] / noise)]
