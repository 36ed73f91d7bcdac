"""``specverify.testing`` is closed: sizes, types, docstrings with examples that run, and old keywords."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import contextlib
import doctest
import inspect
import re
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import get_type_hints

import pytest

from specverify import testing
from specverify.base.verdict import Verdict
from specverify.testing.plans import DEFAULTS, RENAMED, SOME_DEFAULTS, CheckOptions

NAMES = sorted(testing.__all__)
CHECKS = [name for name in NAMES if name.startswith("check_")]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(testing, name))]
WITH_EXAMPLES = [*FUNCTIONS, "CacheOperations", "KernelConvention", "Sizes"]
STANDARD = {"pytest", "Path"}.union(*map(vars, (builtins, typing, collections.abc, contextlib)))
"""Names that a reader of a signature knows: of Python, and of pytest."""
PAGE = Path(__file__).parents[2] / "docs" / "public-api.md"


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_function_has_at_most_eight_parameters_of_its_own(name):
    parameters = inspect.signature(getattr(testing, name)).parameters
    assert len(set(parameters) - set(CheckOptions.__annotations__)) <= 8
    assert set(DEFAULTS) <= set(parameters)


@pytest.mark.parametrize("name", CHECKS)
def test_annotations_are_what_callers_get(name):
    function = getattr(testing, name)
    assert inspect.signature(function).return_annotation == "Sequence[Verdict]"
    assert get_type_hints(function)["return"] == Sequence[Verdict]


def test_options_have_one_default_each():
    assert set(DEFAULTS) | set(SOME_DEFAULTS) == set(CheckOptions.__annotations__)


def annotations_of(thing):
    """Return the annotations in the source of a function, or of the fields and public methods of a class."""
    (tree,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(thing)))).body
    for node in tree.body if isinstance(tree, ast.ClassDef) else [tree]:
        if isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from (item.annotation for item in arguments if item.annotation)
            yield from [node.returns] if node.returns else []
        if isinstance(node, ast.AnnAssign):
            yield node.annotation


PASSED_ON = {"Algorithm", "CheckOfSubject", "HardCall", "Subject", "Verdict"}
"""Values that a caller passes on as they are: the types of their fields are private."""
OPENED = [
    name
    for name in NAMES
    if name not in PASSED_ON
    and (name in FUNCTIONS or (inspect.isclass(getattr(testing, name)) and not name.startswith("Speculation")))
]


@pytest.mark.parametrize("name", OPENED)
def test_every_type_in_a_public_signature_is_exported(name):
    annotations = annotations_of(getattr(testing, name))
    used = {item.id for each in annotations for item in ast.walk(each) if isinstance(item, ast.Name)}
    assert used - STANDARD <= set(testing.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_docstrings_have_their_sections(name):
    text = inspect.getdoc(getattr(testing, name))
    assert [part for part in ("Args:", "Returns:", "Raises:", "Examples:") if part not in text] == []
    own = set(inspect.signature(getattr(testing, name)).parameters) - set(CheckOptions.__annotations__)
    described = set(re.findall(r"^    \**(\w+): ", text, re.MULTILINE))
    assert own <= described


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name):
    thing = getattr(testing, name)
    found = doctest.DocTestFinder(recurse=False).find(thing, name, globs=vars(testing).copy())
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    for test in found:
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0


@pytest.mark.parametrize(
    ("name", "old"), [(name, old) for name, keywords in RENAMED.items() for old in sorted(keywords)]
)
def test_an_old_keyword_is_answered_by_one_sentence_with_the_new_one(name, old):
    with pytest.raises(ValueError, match=rf"\A{name} has no option '{old}': write .*\Z"):
        getattr(testing, name)(lambda: 0, **{old: 1})


def test_the_page_lists_every_public_name():
    assert set(re.findall(r"`(\w+)`", PAGE.read_text("utf-8"))) >= set(testing.__all__)
