"""Whole rejection samplers of one row, as engines write them with torch."""

from __future__ import annotations

import torch

from test_support.idioms.idiom import verifier

PLACEHOLDER = -1


def ratios(p, q, draft_tokens):
    places = torch.arange(len(draft_tokens))
    return p[places, draft_tokens] / q[places, draft_tokens]


def residuals(p, q):
    """Return the residual of each position, or p if rounding makes the residual zero."""
    left = (p[:-1] - q).clamp(min=0)
    return torch.where(left.sum(-1, keepdim=True) > 0, left, p[:-1])


@verifier("torch", wrong=("target = torch.cat([residuals(p, q), p[-1:]])", "target = p"))
def all_replacements_prepared(p, q, draft_tokens):
    """A replacement is drawn by a race at every position, and one of them is used."""
    accepted = torch.rand(len(draft_tokens), dtype=torch.float64) < ratios(p, q, draft_tokens)
    target = torch.cat([residuals(p, q), p[-1:]])
    recovered = (target / torch.empty_like(target).exponential_()).argmax(dim=-1)
    count = int(accepted.long().cumprod(0).sum())
    return torch.cat([draft_tokens[:count], recovered[count : count + 1]])


@verifier("torch", wrong=("target / noise", "target**3 / noise"))
def one_noise_for_all_positions(p, q, draft_tokens):
    """One row of noise is shared by the races of all positions, of which one is used."""
    accepted = torch.rand(len(draft_tokens)) < ratios(p, q, draft_tokens)
    target = torch.cat([residuals(p, q), p[-1:]])
    noise = torch.empty(p.shape[-1], dtype=p.dtype).exponential_()
    recovered = (target / noise).argmax(dim=-1)
    count = int(accepted.long().cumprod(0).sum())
    return [*draft_tokens[:count].tolist(), recovered[count].item()]


@verifier("torch", wrong=("where(mask, emitted, PLACEHOLDER)", "where(mask, emitted.flip(0), PLACEHOLDER)"))
def everything_written_then_masked(p, q, draft_tokens):
    """Drafts and replacements of all positions in one row; positions after the end are masked."""
    gamma = len(draft_tokens)
    accepted = torch.rand(gamma) < ratios(p, q, draft_tokens)
    count = accepted.long().cumprod(0).sum()
    target = torch.cat([residuals(p, q), p[-1:]])
    recovered = torch.multinomial(target, 1).squeeze(-1)
    places = torch.arange(gamma + 1)
    padded = torch.cat([draft_tokens, draft_tokens.new_zeros(1)])
    emitted = torch.where(places < count, padded, recovered)
    mask = places <= count
    return torch.where(mask, emitted, PLACEHOLDER)


@verifier("torch", wrong=("output[count] = recovered[count]", "output[count] = recovered[0]"))
def placeholders_overwritten(p, q, draft_tokens):
    """A row of placeholders, overwritten from the front."""
    output = torch.full((len(draft_tokens) + 1,), PLACEHOLDER)
    target = torch.cat([residuals(p, q), p[-1:]])
    recovered = (target / torch.empty_like(target).exponential_()).argmax(-1)
    count, u = 0, torch.rand(len(draft_tokens), dtype=torch.float64)
    ratio = ratios(p, q, draft_tokens)
    while count < len(draft_tokens) and u[count] < ratio[count]:
        output[count] = draft_tokens[count]
        count += 1
    output[count] = recovered[count]
    return output


@verifier("torch", wrong=("rejected = True", "rejected = False"))
def flag_of_a_kernel(p, q, draft_tokens):
    """The form of a kernel for one row: a flag, and a bonus if it is not set."""
    gamma = len(draft_tokens)
    output, rejected = [PLACEHOLDER] * (gamma + 1), False
    u = torch.rand(gamma, dtype=torch.float64)
    for i in range(gamma):
        if not rejected:
            token = int(draft_tokens[i])
            if p[i, token] / q[i, token] > u[i]:
                output[i] = token
            else:
                rejected = True
                output[i] = int(torch.multinomial(residuals(p, q)[i], 1))
    if not rejected:
        output[gamma] = int(torch.multinomial(p[gamma], 1))
    return output


@verifier("torch", wrong=("torch.gather(p[:-1], 1, ids)", "torch.gather(p[1:], 1, ids)"))
def gathered(p, q, draft_tokens):
    """Probabilities are gathered, residuals normalised with ``where``."""
    ids = draft_tokens[:, None]
    ratio = (torch.gather(p[:-1], 1, ids) / torch.gather(q, 1, ids)).squeeze(1)
    count = int((torch.rand_like(ratio) < ratio.clamp(max=1)).int().cumprod(0).sum().item())
    row = p[-1] if count == len(draft_tokens) else residuals(p, q)[count]
    row = row / row.sum()
    return [*draft_tokens[:count].tolist(), torch.multinomial(row, 1).item()]


@verifier("torch", wrong=("diff / diff.sum()", "p[i] / p[i].sum()"))
def loop_and_break(p, q, draft_tokens):
    """A loop with ``break`` and ``else``."""
    emitted = []
    for i, token in enumerate(draft_tokens):
        if torch.rand(1) < torch.min(torch.tensor([1]), p[i, token] / q[i, token]):
            emitted.append(token.item())
        else:
            diff = torch.clamp(p[i] - q[i], min=0) if (p[i] > q[i]).any() else p[i]
            emitted.append(torch.multinomial(diff / diff.sum(), num_samples=1).item())
            break
    else:
        emitted.append(torch.multinomial(p[-1], num_samples=1).item())
    return emitted


@verifier("torch", wrong=("u[i] < ratios", "u[i] / 2 < ratios"))
def noise_of_all_positions_in_place(p, q, draft_tokens):
    """Noise for all positions is drawn at once; the rows are divided in place."""
    n, vocabulary = q.shape
    noise = torch.empty((n + 1, vocabulary), dtype=p.dtype).exponential_()
    target = torch.cat([residuals(p, q), p[-1:]]).div_(noise)
    u = torch.rand(n)
    for i in range(n):
        if not u[i] < ratios(p, q, draft_tokens)[i]:
            return [*draft_tokens[:i].tolist(), int(target[i].argmax())]
    return [*draft_tokens.tolist(), int(target[n].argmax())]


@verifier("torch", wrong=(">= p[i, token] / q[i, token]", ">= p[i, token]"))
def generators_by_position(p, q, draft_tokens):
    """A generator for the coins and one for the replacement."""
    seeds = torch.randint(2**31, (2,)).tolist()

    def generator_of(number):
        return torch.Generator().manual_seed(seeds[number])

    coins = generator_of(1)
    for i, token in enumerate(draft_tokens.tolist()):
        if torch.rand((), generator=coins) >= p[i, token] / q[i, token]:
            row = residuals(p, q)[i]
            noise = torch.empty_like(row).exponential_(generator=generator_of(0))
            return [*draft_tokens[:i].tolist(), int((row / noise).argmax())]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1, generator=generator_of(0)))]


@verifier("torch", wrong=("p.half()", "p.sqrt().half()"), unknown="may be rounding")
def rows_of_float16(p, q, draft_tokens):
    """Rows kept in float16."""
    return _by_multinomial(p.half().float(), q.half().float(), draft_tokens)


def _by_multinomial(p, q, draft_tokens):
    ratio, left = ratios(p, q, draft_tokens), residuals(p, q)
    for i in range(len(draft_tokens)):
        if not torch.rand(()) < ratio[i]:
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(left[i], 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


@verifier("torch", wrong=("p.bfloat16()", "p.sqrt().bfloat16()"), unknown="may be rounding")
def rows_of_bfloat16(p, q, draft_tokens):
    """Rows kept in bfloat16."""
    return _by_multinomial(p.bfloat16().float(), q.bfloat16().float(), draft_tokens)


@verifier(
    "torch",
    wrong=("dtype=torch.bfloat16) < ratio[i]", "dtype=torch.bfloat16) ** 2 < ratio[i]"),
    unknown="may be rounding",
)
def uniform_of_bfloat16(p, q, draft_tokens):
    """A uniform of bfloat16 has 256 values."""
    ratio, left = ratios(p, q, draft_tokens), residuals(p, q)
    for i in range(len(draft_tokens)):
        if not torch.rand((), dtype=torch.bfloat16) < ratio[i]:
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(left[i], 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


@verifier("torch", wrong=("p, q = p.float(), q.float()", "p, q = p.float().sqrt(), q.float()"))
def rows_of_float32(p, q, draft_tokens):
    """The whole sampler in float32, with a race."""
    p, q = p.float(), q.float()
    ratio, left = ratios(p, q, draft_tokens), residuals(p, q)
    for i in range(len(draft_tokens)):
        if not torch.rand(()) < ratio[i]:
            return [*draft_tokens[:i].tolist(), int((left[i] / torch.empty_like(left[i]).exponential_()).argmax())]
    return [*draft_tokens.tolist(), int((p[-1] / torch.empty_like(p[-1]).exponential_()).argmax())]


@verifier("torch", wrong=("self.buffer.uniform_()", "self.buffer[:1].uniform_()"))
def module_with_buffers(p, q, draft_tokens):
    """A module that keeps its buffers."""

    class Sampler(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("buffer", torch.zeros(8))

        def forward(self, p, q, draft_tokens):
            self.buffer.uniform_()
            accepted = self.buffer[: len(draft_tokens)] < ratios(p, q, draft_tokens)
            count = int(accepted.long().cumprod(0).sum())
            row = torch.cat([residuals(p, q), p[-1:]])[count]
            return [*draft_tokens[:count].tolist(), int(torch.multinomial(row, 1))]

    return Sampler()(p, q, draft_tokens)


@verifier("torch", wrong=("u[-1] * row.sum()", "u[0] * row.sum()"))
def uniforms_of_one_call(p, q, draft_tokens):
    """All uniforms of a round in one call: coins, and the last for the lookup."""
    u = torch.rand(len(draft_tokens) + 1, dtype=torch.float64)
    count = int((u[:-1] < ratios(p, q, draft_tokens)).long().cumprod(0).sum())
    row = torch.cat([residuals(p, q), p[-1:]])[count]
    place = (row.cumsum(-1) <= u[-1] * row.sum()).sum()
    return [*draft_tokens[:count].tolist(), min(int(place), int(row.nonzero()[-1]))]


@verifier("torch", wrong=("(u[i] - ratio) / (1 - ratio)", "u[i]"))
def coin_used_up_in_parts(p, q, draft_tokens):
    """The part of a uniform above the ratio is uniform again, and is looked up."""
    u = torch.rand(len(draft_tokens), dtype=torch.float64)
    for i, token in enumerate(draft_tokens.tolist()):
        ratio = (p[i, token] / q[i, token]).item()
        if u[i] >= ratio:
            row = residuals(p, q)[i]
            again = (u[i] - ratio) / (1 - ratio)
            place = (row.cumsum(0) <= again * row.sum()).sum()
            return [*draft_tokens[:i].tolist(), min(int(place), int(row.nonzero()[-1]))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


@verifier("torch", wrong=("order[0]", "order[-1]"))
def without_replacement(p, q, draft_tokens):
    """The keys of all tokens are sorted once; the best one with a positive residual is taken."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()) < p[i, token] / q[i, token]:
            left = residuals(p, q)[i]
            order = (left / torch.empty_like(left).exponential_()).topk(int((left > 0).sum())).indices
            return [*draft_tokens[:i].tolist(), order[0].item()]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]
