"""The notebooks as they are kept: nothing executed, one style, and code that a reader can take in at once."""

from __future__ import annotations

import json
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
