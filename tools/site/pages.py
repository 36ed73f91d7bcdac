"""Add to the site the pages outside ``docs/``, the notebooks, and links between pages."""

from __future__ import annotations

import re
from pathlib import Path

import notebook_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OF_THE_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "ARCHITECTURE.md": "architecture.md"}
FENCED = re.compile(r"(^[ ]*(`{3,}|~{3,}).*?^[ ]*\2[ ]*$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages of the root folder and the notebooks, with their pictures, to the files of the site."""
    written: dict[str, str | bytes] = {name: (ROOT / source).read_text("utf-8") for source, name in OF_THE_ROOT.items()}
    written |= notebook_pages.pages(ROOT / "notebooks", ROOT / "build" / "notebooks")
    for name, content in written.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: object) -> str:
    """Convert links for the root folder to links of the site, and ``docs/some.md`` in a sentence to a link."""
    here = page.file.src_uri
    known = {file.src_uri for file in files.documentation_pages()}

    def address(name: str) -> str | None:
        name = OF_THE_ROOT.get(name, name.removeprefix("docs/"))
        beside = str(Path(here).parent / name)
        return next((item for item in (name, f"{name}index.md", beside) if item in known), None)

    def named(match: re.Match[str]) -> str:
        found = address(match[1])
        up = "../" * here.count("/")
        return f"[`{match[1]}`]({up}{found})" if found and found != here else match[0]

    def moved(match: re.Match[str]) -> str:
        return f"]({address(match[1]) or match[1].removeprefix('docs/')}{match[2] or ''})"

    def prose(text: str) -> str:
        if here in OF_THE_ROOT.values():
            text = re.sub(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)", moved, text)
        return re.sub(r"(?<!\[)`((?:docs/)?[\w./-]+(?:\.md|findings/|notebooks/))`(?!\])", named, text)

    pieces = enumerate(FENCED.split(markdown))  # prose, a fenced block, its fence, prose and so on
    return "".join(piece if number % 3 == 1 else prose(piece) for number, piece in pieces if number % 3 != 2)
