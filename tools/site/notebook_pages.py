"""Convert the notebooks to pages of the site, with formulas as MathML and pictures as files.

Outputs are those of the executed copies, if there are any.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from latex2mathml.converter import convert
from nbconvert import MarkdownExporter

NOT_EXECUTED = "!!! note\n    This build did not execute the notebook: `nox -s docs` does, and shows what it prints.\n"
WIDGET = "application/vnd.jupyter.widget-view+json"
"""What sliders leave behind, which is nothing where no notebook runs: pictures beside them say the same."""
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
PICTURE = re.compile(r"!\[png\]\(([^)]*)\)")
NO_BRACKETS = str.maketrans("[]\\", "() ")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def pages(folder: Path, executed: Path) -> dict[str, str | bytes]:
    """Return the files of all notebooks by their path in the site: one page each with its pictures, and the list."""
    found: dict[str, str | bytes] = {}
    titles = []
    for notebook in sorted(folder.glob("*.ipynb")):
        done = executed / notebook.name
        fresh = done.exists() and done.stat().st_mtime >= notebook.stat().st_mtime
        text, pictures = page(done if fresh else notebook)
        title, _, rest = text.lstrip().partition("\n")
        found[f"notebooks/{notebook.stem}.md"] = f"{title}\n\n{'' if fresh else NOT_EXECUTED}\n{rest}"
        found |= {f"notebooks/{name}": data for name, data in pictures.items()}
        titles.append(f"* [{title.removeprefix('# ')}]({notebook.stem}.md)")
    first = "# Notebooks\n\nFor a reader who knows what a softmax is. The files are in `notebooks/`"
    found["notebooks/index.md"] = f"{first}; `nox -s notebooks` executes them.\n\n" + "\n".join(titles) + "\n"
    return found


def page(notebook: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    cells = nbformat.read(notebook, as_version=4)
    shown = []
    for cell in cells.cells:
        if cell.cell_type == "markdown":
            cell.source = with_formulas(cell.source.replace(".ipynb)", ".md)"))
        elif "hide-input" in cell.metadata.get("tags", ()):
            shown.append(folded(cell.source))
            cell.metadata.transient = {"remove_source": True}
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
        shown.append(cell)
    cells.cells = shown
    exporter = MarkdownExporter()
    text, resources = exporter.from_notebook_node(cells, {"unique_key": notebook.stem, "output_files_dir": "."})
    return with_titles(text), {name.removeprefix("./"): data for name, data in resources["outputs"].items()}


def with_titles(text: str) -> str:
    """Return Markdown in which each picture is titled by the heading above it and marked as drawn by code."""
    heading, pieces = "", []
    for place, piece in enumerate(CODE.split(text)):
        lines = piece.split("\n")
        for number, line in enumerate(lines if place % 2 == 0 else ()):
            heading = line.lstrip("# ").translate(NO_BRACKETS) if line.startswith("#") else heading
            lines[number] = PICTURE.sub(rf"![{heading}, as a picture](\1){{ .drawn }}", line)
        pieces.append("\n".join(lines))
    return "".join(pieces)


def folded(source: str) -> nbformat.NotebookNode:
    """Return a cell of code that only draws, folded until a reader opens it."""
    code = "\n".join(f"    {line}" if line else "" for line in source.splitlines())
    return nbformat.v4.new_markdown_cell(f'??? note "The code of this picture"\n\n    ```python\n{code}\n    ```')


def with_formulas(text: str) -> str:
    """Return Markdown with its formulas as MathML, which browsers show without scripts."""
    pieces = CODE.split(text)
    return "".join(piece if i % 2 else FORMULA.sub(as_mathml, piece) for i, piece in enumerate(pieces))


def as_mathml(match: re.Match[str]) -> str:
    """Return a LaTeX formula as MathML; one that had its own line keeps it."""
    return convert(" ".join((match[1] or match[2]).split()), display="block" if match[1] else "inline")


def execute(folder: Path, executed: Path) -> None:
    """Execute the notebooks that changed since their last execution, and keep the executed copies."""
    from nbclient import NotebookClient  # noqa: PLC0415  # of the extra ``notebooks``

    executed.mkdir(parents=True, exist_ok=True)
    for notebook in sorted(folder.glob("*.ipynb")):
        done = executed / notebook.name
        if done.exists() and done.stat().st_mtime >= notebook.stat().st_mtime:
            continue
        cells = nbformat.read(notebook, as_version=4)
        NotebookClient(cells, resources={"metadata": {"path": str(folder)}}).execute()
        nbformat.write(cells, done)


if __name__ == "__main__":
    execute(Path(sys.argv[1]), Path(sys.argv[2]))
