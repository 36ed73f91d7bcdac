"""outlines-core 0.2.14: tokens that begin an unfinished repetition behind a complete match are not allowed.

    python outlines_core_repetition.py

Status 0 fixed, 1 present, 125 cannot be tested. The number 1.5 matches; its token "." must be allowed behind "1". The
automaton reports a match one byte late, so the state behind "1." counts as a match that is none, and is left out.
"""

import sys

try:
    import outlines_core
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

CASES = (
    (r"[0-9]+(\.[0-9]+)?", ["0", "1", "5", "."], ["1", ".", "5"]),
    ("a(, a)*", ["a", ",", " "], ["a", ",", " ", "a"]),
    ("(ab)+", ["a", "b"], ["a", "b", "a", "b"]),
    ("[ab]*", ["a", "b"], ["a", "b"]),
)
"""Pattern, tokens, and a text that matches; the last one has no repetition of two characters."""


def refused(pattern, tokens, text):
    vocabulary = outlines_core.Vocabulary(len(tokens), {token: [place] for place, token in enumerate(tokens)})
    guide = outlines_core.Guide(outlines_core.Index(pattern, vocabulary))
    for place, token in enumerate(text):
        if tokens.index(token) not in guide.get_tokens():
            return "".join(text[:place]), token
        guide.advance(tokens.index(token))
    return None


def present():
    found = {pattern: refused(pattern, tokens, text) for pattern, tokens, text in CASES}
    if found[CASES[-1][0]]:
        raise ValueError("a pattern without such a repetition is refused too")
    for pattern, _, text in CASES:
        if found[pattern]:
            print(f"{pattern}: {''.join(text)!r} matches, and behind {found[pattern][0]!r} the token "
                  f"{found[pattern][1]!r} is not allowed")  # fmt: skip
    return any(found.values())


try:
    sys.exit(int(present()))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
