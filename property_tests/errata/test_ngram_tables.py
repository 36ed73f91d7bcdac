"""The n-gram note: orders, back-off, counts, and cost."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

from reference import chain, ngram_table
from reference.verifiers.sample_and_match import sample_and_match
from test_support.errata.record import Verdict, erratum
from test_support.laws.rational import always, law_of, pmf

F = Fraction
SENTENCES = ("The capital of France is Paris .", "The capital of Germany is Berlin .")
WORDS = [word for sentence in SENTENCES for word in sentence.split()]
IDS = {word: index for index, word in enumerate(dict.fromkeys(WORDS))}
TEXT = tuple(IDS[word] for word in WORDS)


def encoded(words):
    """Return the token ids of a text."""
    return tuple(IDS[word] for word in words.split())


@erratum(
    "NA",
    "2.2, the example",
    stated="From two sentences, P(Paris | The capital of France is) = 1 and P(Paris | The capital of Germany is) = 0.",
    verdict=Verdict.TRUE,
    correct="The counts give {france} and {germany}, with contexts of {length} tokens.",
)
def test_the_capital_example_is_counted_right():
    length = 5
    table = ngram_table(length + 1, backoff=False).observe(TEXT)

    def probability(word, context):
        row = table.counts[encoded(context)]
        return F(row.get(IDS[word], 0), sum(row.values()))

    france, germany = (probability("Paris", f"The capital of {country} is") for country in ("France", "Germany"))
    assert (france, germany) == (1, 0)
    assert probability("Berlin", "The capital of Germany is") == 1
    return {"france": france, "germany": germany, "length": length}


@erratum(
    "NA",
    "2.2 and 2.3, the orders",
    stated="A trigram predicts from 'The capital of France is'; 'France is' is a 2-gram context.",
    verdict=Verdict.INCONSISTENT,
    correct="By the note's own definition an N-gram predicts from N - 1 tokens: the {long} tokens of the first need a "
    "{long_order}-gram, the {short} of the second a {short_order}-gram. A table of trigrams looks at {trigram} "
    "tokens, one of 2-grams at {bigram}.",
)
def test_an_n_gram_predicts_from_one_token_less():
    long, short = len(encoded("The capital of France is")), len(encoded("France is"))
    trigram, bigram = (max(ngram_table(order).context_lengths) for order in (3, 2))
    assert ngram_table(long + 1).context_lengths[0] == long
    assert long + 1 != 3
    assert short + 1 != 2
    return {
        "long": long,
        "long_order": long + 1,
        "short": short,
        "short_order": short + 1,
        "trigram": trigram,
        "bigram": bigram,
    }


@erratum(
    "NA",
    "2.2, the formula",
    stated="P(x | context) is count(context, x) over count(context).",
    verdict=Verdict.CONDITION,
    correct="The context at the very end of the text has no successor: in 'a b a' the probabilities after a sum to "
    "{total}. Divide by the number of times something followed, and they sum to {right}.",
)
def test_a_context_at_the_end_has_no_successor():
    text = (0, 1, 0)
    row = ngram_table(2).observe(text).counts[0,]
    total, right = (F(sum(row.values()), count) for count in (text.count(0), sum(row.values())))
    assert total == F(1, 2) < right == 1
    return {"total": total, "right": right}


@erratum(
    "NA",
    "2.3",
    stated="Where an n-gram was not seen, back off to the probability in the shorter context.",
    verdict=Verdict.CONDITION,
    correct="True if 'seen' is asked of the context. Asked of context and token it is no distribution: counts ab -> c "
    "once, b -> c and b -> d once give P(c | ab) + P(d | ab) = {each}. Per context the sum is {context}.",
)
def test_back_off_is_decided_by_the_context():
    counts = {"ab": Counter("c"), "b": Counter("cd")}

    def estimate(token, per_context):
        row = counts["ab"]
        if row[token] or (per_context and row):
            return F(row[token], row.total())
        return F(counts["b"][token], counts["b"].total())

    each, context = (sum(estimate(token, flag) for token in "cd") for flag in (False, True))
    assert each > 1 == context
    return {"each": each, "context": context}


@erratum(
    "NA",
    "3.4",
    stated="Trigrams of the prompt 'The capital of France is': three contexts with successor, 'France is' with none.",
    verdict=Verdict.TRUE,
    correct="A table of order 3 without back-off holds exactly {count} contexts, and proposes nothing after the "
    "prompt.",
)
def test_the_prompt_is_learnt_as_shown():
    prompt = encoded("The capital of France is")
    table = ngram_table(3, backoff=False).observe(prompt)
    expected = {"The capital": "of", "capital of": "France", "of France": "is"}
    assert {context: dict(row) for context, row in table.counts.items()} == {
        encoded(context): {IDS[word]: 1} for context, word in expected.items()
    }
    assert table.predict(prompt) is None
    return {"count": len(table.counts)}


@erratum(
    "NA",
    "6, memory",
    stated="The table needs O(|V|^n n) memory.",
    verdict=Verdict.CONDITION,
    correct="This bound is never reached: the stored table grows with the text. {length} tokens over V = {vocabulary} "
    "with orders up to 4 store {entries} pairs of context and token, at most (n - 1) length = {bound}; V^4 is "
    "{ceiling}.",
)
def test_a_table_grows_with_the_text():
    rng, vocabulary, order = random.Random(0), 50, 4
    text = tuple(rng.randrange(vocabulary) for _ in range(1000))
    entries = sum(len(row) for row in ngram_table(order).observe(text).counts.values())
    bound, ceiling = (order - 1) * len(text), vocabulary**order
    assert entries <= bound < ceiling
    return {"length": len(text), "vocabulary": vocabulary, "entries": entries, "bound": bound, "ceiling": ceiling}


@erratum(
    "NA",
    "6, the cost of verification",
    stated="Verification by the target is O(1), one pass.",
    verdict=Verdict.CONDITION,
    correct="It is one pass, but over gamma + 1 positions: {rows} for gamma = 1, 4, 16. The time is constant only "
    "while reading the weights takes most of it.",
)
def test_a_verifying_pass_grows_with_gamma():
    even = pmf("1/2", "1/2")

    def rows(gamma):
        read = set()

        def target(tokens):
            read.add(tokens)
            return always(pmf(1, 0))(tokens)

        law_of(lambda draws: sample_and_match(draws, target, (0,), chain((0,) * gamma, (even,) * gamma)).accepted)
        return len(read)

    found = [rows(gamma) for gamma in (1, 4, 16)]
    assert found == [2, 5, 17]
    return {"rows": found}
