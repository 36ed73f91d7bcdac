"""The notebooks as they are kept: nothing executed, one style, and code that a reader can take in at once."""

from __future__ import annotations

import ast
import inspect
import json
from importlib import import_module
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
LONGEST = 40
"""Lines of a cell."""


def cells(notebook, kind):
    return [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def draws(cell):
    return "plt.subplots(" in source(cell)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_kept_unexecuted_in_one_style_and_short_cells(notebook):
    code = cells(notebook, "code")
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert max(len(source(cell).splitlines()) for cell in code) <= LONGEST
    first = next(place for place, cell in enumerate(code) if draws(cell))
    assert any("pictures.use_style()" in source(cell) for cell in code[:first])
    assert not [cell for cell in code if '"tab:' in source(cell) or "tight_layout" in source(cell)]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_code_that_only_draws_is_folded_away(notebook):
    folded = [cell for cell in cells(notebook, "code") if "hide-input" in cell["metadata"].get("tags", ())]
    assert folded
    assert all(cell["metadata"]["jupyter"] == {"source_hidden": True} for cell in folded)


@pytest.mark.parametrize("notebook", NOTEBOOKS[:-1], ids=lambda notebook: notebook.stem)
def test_a_notebook_names_the_next_one(notebook):
    following = NOTEBOOKS[NOTEBOOKS.index(notebook) + 1].name
    assert f"]({following})" in source(cells(notebook, "markdown")[-1])


def imported(module, name):
    """Return what ``from module import name`` gives."""
    found = getattr(import_module(module), name, None)
    return import_module(f"{module}.{name}") if found is None else found


def misfits(code):
    """Return the calls of the project's functions in ``code`` whose arguments do not fit, with the reason of each."""
    tree = ast.parse(code)
    known, wrong = {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] in {"specverify", "reference"}:
            known.update({name.asname or name.name: imported(node.module, name.name) for name in node.names})
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
            continue
        function, keywords = node.func, {each.arg: None for each in node.keywords}
        if isinstance(function, ast.Attribute) and inspect.ismodule(known.get(getattr(function.value, "id", ""))):
            called = getattr(known[function.value.id], function.attr)
        else:
            called = known.get(getattr(function, "id", ""))
        if callable(called) and None not in keywords:
            try:
                inspect.signature(called).bind(*node.args, **keywords)
            except TypeError as reason:
                wrong.append(f"{ast.unparse(node)}: {reason}")
    return wrong


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_calls_functions_as_they_are(notebook):
    lines = [line for cell in cells(notebook, "code") for line in source(cell).splitlines()]
    code = "\n".join(line for line in lines if not line.startswith(("%", "!")))
    assert "import" in code
    assert misfits(code) == []


def test_a_call_with_an_argument_too_many_is_seen():
    imports = "from specverify.report import prose\nfrom specverify.report.prose import failure\n"
    assert misfits(imports + "failure(verdict)\nprose.failure(verdict)") == []
    assert len(misfits(imports + "failure(verdict, verdicts)\nprose.failure(verdict, example=1)")) == 2
