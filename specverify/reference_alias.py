"""One package under two names: ``specverify.reference`` and, where nothing else has that name, ``reference``.

The folder ``reference/`` is importable on its own. Its name is common: kernel authors keep a ``reference.py`` beside
their tests. specverify therefore imports the algorithms as ``specverify.reference``: a link in a checkout, a copy in a
wheel. Without this module, a program that uses both names would get every class twice.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

OURS = "specverify.reference"
PLAIN = "reference"
_PACKAGE = Path(__file__).parent / "reference" / "__init__.py"
_BESIDE = Path(__file__).parents[1] / "reference" / "__init__.py"


class SameModule(Loader):
    """A loader that answers an import with a module that is already loaded under another name."""

    def __init__(self, name: str) -> None:
        """Store ``name``, the name under which the module is imported already."""
        self.name = name

    def exec_module(self, module: ModuleType) -> None:
        """Replace ``module``, which is new and empty, in ``sys.modules`` by the loaded module.

        The import system permits this.
        """
        sys.modules[module.__name__] = import_module(self.name)


class ReferenceFinder(MetaPathFinder):
    """A finder for ``sys.meta_path`` that gives both names of the package the same modules.

    The name that is imported first is the one that the modules keep.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol of finders
        target: ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> ModuleSpec | None:
        """Return a spec that answers an import of ``fullname`` with the module of the other name.

        Returns None for any other module, which is then searched for as usual.
        """
        for root, other in ((OURS, PLAIN), (PLAIN, OURS)):
            if fullname == root:
                return _spec_of_package(root, other)
            if fullname.startswith(f"{root}.") and sys.modules[root].__name__ == other:
                return ModuleSpec(fullname, SameModule(other + fullname.removeprefix(root)))
        return None


def install_reference_finder() -> None:
    """Put the finder first on ``sys.meta_path``, once in a process."""
    if not any(isinstance(finder, ReferenceFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, ReferenceFinder())


def _spec_of_package(root: str, other: str) -> ModuleSpec | None:
    if root == OURS:
        loaded = getattr(sys.modules.get(other), "__file__", None)
        if loaded is not None and _is_our_package(loaded):
            return ModuleSpec(root, SameModule(other))
        if _PACKAGE.exists():
            return None
        return spec_from_file_location(root, _BESIDE, submodule_search_locations=[str(_BESIDE.parent)])
    usual = PathFinder.find_spec(root)
    if usual is None or usual.origin is None or not _is_our_package(usual.origin):
        return usual
    return ModuleSpec(root, SameModule(other))


def _is_our_package(file: str) -> bool:
    """Return whether ``file`` is the ``__init__.py`` of our algorithms.

    A checkout beside an installed wheel has such a file too; the contents are compared.
    """
    ours = _PACKAGE if _PACKAGE.exists() else _BESIDE
    path = Path(file)
    return path.name == ours.name and path.exists() and path.read_bytes() == ours.read_bytes()
