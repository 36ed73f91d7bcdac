"""Write a first test file for a package: its verifiers, decoders, drafters and engines, found by parameter names.

Files are parsed and never imported.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

MOST_FILES = 2000
LEFT_OUT = frozenset({"build", "dist", "docs", "node_modules", "site-packages", "venv", "env"})
P = re.compile(r"p|p_.*|target(_.*)?|.*_target|(?!.*draft).*target.*(prob|logit|pmf|dist).*")
Q = re.compile(r"q|q_.*|draft|.*draft.*(prob|logit|pmf|dist).*|(prob|logit)s?.*draft.*")
DRAFTS = re.compile(r"draft(s|ed)?|.*draft.*(tok|ids?).*|(tok|ids?).*draft.*|proposed.*|candidates?")
KNOWN = re.compile(r"lengths?|temperature|top_k|top_p|min_p")
TEXT = re.compile(r"tokens|prefix|context|text|input_ids|ids|prompt(_ids)?")
GAMMA = re.compile(r"gamma|k|n|num_.*|n_.*|lookahead|max_.*")
DRAFT_MODEL = re.compile(r"draft(er|_model|ing_model)?|assistant(_model)?|small(_model)?|proposer")
TARGET_MODEL = re.compile(r"target(_model)?|model|large(_model)?|llm|verifier")


class TestableFunction(NamedTuple):
    """A function in a package that specverify can examine: its module, its name, and the names of its ``parameters``.

    The file is parsed and not imported, so the parameters are those of its text.
    """

    module: str
    name: str
    kind: str
    """The kind of function, one of ``KINDS``."""
    parameters: tuple[str, ...]
    label: str = ""
    """The name with its module, if functions of several modules have the same name."""


class FunctionKind(NamedTuple):
    """One kind of function: how it is recognised, and the lines that test it.

    ``fits`` decides from the names of the parameters, and the name of the function, whether a function is of this kind.
    """

    fits: Callable[[Sequence[str], str], bool]
    lines: Callable[[TestableFunction], list[str]]
    """Returns its lines in the test file: an entry of the subjects, or its own test."""
    as_it_is: bool = True
    """Whether a check can take the function unchanged. If not, its lines in the test file are comments, which the user
    must complete."""


def found_in(folder: Path) -> list[TestableFunction]:
    """Return the functions in the modules of ``folder`` that can be examined, in the order of the files."""
    return [result for file in _files(folder) for result in _found_in_file(file, folder)]


def test_text(found: Sequence[TestableFunction]) -> str:
    """Return the text of the test file for the functions ``found``.

    Functions that can be tested as they are come first. Functions that need a decision by the user follow as comments.
    """
    common = {name for name, number in Counter(item.name for item in found).items() if number > 1}
    found = [item._replace(label=f"{item.module}.{item.name}") if item.name in common else item for item in found]
    live = [item for item in found if KINDS[item.kind].as_it_is]
    modules = dict.fromkeys(item.module for item in live)
    imports = [f"import {module}" for module in modules] + ([""] if live else [])
    parts = [HEAD, *imports, "from specverify.testing import parametrize_with_checks", "", ""]
    if live:
        subjects = [line for item in live for line in KINDS[item.kind].lines(item)]
        parts += ["@parametrize_with_checks(", "    {", *(f"        {line}" for line in subjects), "    },"]
        parts += ["    quick=True,  # an answer in seconds; leave it out for every case", ")"]
        parts += ["def test_speculation(check):", "    check()"]
    else:
        parts[1:] = TEMPLATE
    for item in found:
        if item not in live:
            parts += ["", "", *(f"# {line}".rstrip() for line in KINDS[item.kind].lines(item))]
    return "\n".join(parts) + "\n"


HEAD = '''"""Is the speculative decoding of this project exact? One test for each subject and check."""
'''
TEMPLATE = [
    "# Pass a function that decides drafts: verify(p, q, draft_tokens) -> emitted tokens, p [gamma + 1, vocabulary]",
    "# and q [gamma, vocabulary]; or a function of one round: one_round(draws, target, draft, tokens) -> new tokens.",
    "#",
    "# import my_package",
    "# from specverify.testing import parametrize_with_checks",
    "#",
    "# @parametrize_with_checks([my_package.my_verifier], quick=True)",
    "# def test_speculation(check):",
    "#     check()",
]


def _files(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder that may contain code to test.

    Left out are tests, virtual environments, set-up files such as ``setup.py``, and modules whose name begins with
    ``_``. At most ``MOST_FILES`` files of the folder are considered.
    """
    listed = sorted(folder.rglob("*.py"))[:MOST_FILES]
    for file in listed:
        inside = file.relative_to(folder).parts
        hidden = any(part.startswith((".", "test")) or part in LEFT_OUT for part in inside)
        if not hidden and not file.stem.startswith(("_", "conftest", "setup", "noxfile")) and not _is_environment(file):
            yield file


def _is_environment(file: Path) -> bool:
    return any((parent / "pyvenv.cfg").exists() for parent in file.parents)


def _found_in_file(file: Path, folder: Path) -> Iterator[TestableFunction]:
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
        return
    parts = list(file.relative_to(folder).with_suffix("").parts)
    module = ".".join(parts[1:] if parts[0] == "src" and len(parts) > 1 else parts)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            parameters = tuple(item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
            kind = next((name for name, kind in KINDS.items() if kind.fits(parameters, node.name)), None)
            if kind is not None and all(part.isidentifier() for part in module.split(".")):
                yield TestableFunction(module, node.name, kind, parameters)


def _is_decoder(names: Sequence[str], name: str) -> bool:
    return tuple(names[:3]) == ("draws", "target", "draft") and len(names) in {4, 5, 6}


def _is_tree(names: Sequence[str], name: str) -> bool:
    return "parents" in names and any(map(P.fullmatch, names))


def _is_verifier(names: Sequence[str], name: str) -> bool:
    places = _places(names)
    return set(places) == {"p", "q", "draft_tokens"} and all(
        KNOWN.fullmatch(other) for other in names if other not in places.values()
    )


def _places(names: Sequence[str]) -> Mapping[str, str]:
    """Return a dict: role ("p", "q" or "draft_tokens") -> the parameter with this role, one of ``names``."""
    result: dict[str, str] = {}
    for word, pattern in (("q", Q), ("draft_tokens", DRAFTS), ("p", P)):
        match = next((name for name in names if name not in result.values() and pattern.fullmatch(name)), None)
        if match is not None:
            result[word] = match
    return result


def _is_drafter(names: Sequence[str], name: str) -> bool:
    two = len(names) == 2 and TEXT.fullmatch(names[0]) and GAMMA.fullmatch(names[1])
    return bool(two) and re.search(r"draft|propos|specul", name) is not None


def _is_engine(names: Sequence[str], name: str) -> bool:
    models = any(map(DRAFT_MODEL.fullmatch, names)) and any(map(TARGET_MODEL.fullmatch, names))
    return models and any(map(TEXT.fullmatch, names))


def _as_it_is(found: TestableFunction) -> list[str]:
    return [f'"{found.label or found.name}": {found.module}.{found.name},']


def _verifier_lines(found: TestableFunction) -> list[str]:
    places = _places(found.parameters)
    if tuple(found.parameters[:3]) == (places["p"], places["q"], places["draft_tokens"]):
        return _as_it_is(found)
    given = ", ".join(f"{parameter}={word}" for word, parameter in places.items())
    return [f'"{found.label or found.name}": lambda p, q, draft_tokens: {found.module}.{found.name}({given}),']


def _tree_lines(found: TestableFunction) -> list[str]:
    place = f"{found.module}.{found.name}"
    return [
        f"{place} looks like a verifier of trees. How they are drawn decides what is right: say it in drafts=.",
        *_test_of(found, "check_verifier", [f'check_verifier({place}, form="tree", drafts="top_k")']),
    ]


def _drafter_lines(found: TestableFunction) -> list[str]:
    place = f"{found.module}.{found.name}"
    return [
        f"{place} looks like a drafter. It should return (draft_tokens, q).",
        *_test_of(found, "check_drafter", [f"check_drafter({place})"]),
    ]


def _engine_lines(found: TestableFunction) -> list[str]:
    place = f"{found.module}.{found.name}"
    call = f"{place}({', '.join(f'{name}=...' for name in found.parameters)})"
    calls = [f"fast = lambda: {call}", "plain = lambda: ...  # the same prompt, decoded by the target alone"]
    return [
        f"{place} looks like an engine. Both calls should return the new token ids.",
        *_test_of(found, "check_engine", [*calls, "check_engine(fast, plain)"]),
    ]


def _test_of(found: TestableFunction, check: str, body: Sequence[str]) -> list[str]:
    imports = ["", f"import {found.module}", f"from specverify.testing import {check}", "", ""]
    name = (found.label or found.name).replace(".", "_")
    return [*imports, f"def test_{name}():", *(f"    {line}" for line in body)]


KINDS: Mapping[str, FunctionKind] = {
    "decoder": FunctionKind(_is_decoder, _as_it_is),
    "tree verifier": FunctionKind(_is_tree, _tree_lines, as_it_is=False),
    "verifier": FunctionKind(_is_verifier, _verifier_lines),
    "drafter": FunctionKind(_is_drafter, _drafter_lines, as_it_is=False),
    "engine": FunctionKind(_is_engine, _engine_lines, as_it_is=False),
}
