"""The line of foreign code that an error is reported with."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from specverify.foreign.places import place_of_error, sentence_of


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """Return a function that raises, of a module in a folder of installed packages."""
    file = tmp_path / "site-packages" / "cache_package.py"
    file.parent.mkdir()
    file.write_text("def crop(length):\n    raise ValueError(f'length {length} is not supported')\n")
    spec = importlib.util.spec_from_file_location("cache_package", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "cache_package", module)
    spec.loader.exec_module(module)
    return module.crop


def raised(function, *arguments):
    with pytest.raises(ValueError, match="length") as caught:
        function(*arguments)
    return caught.value


def test_an_error_of_an_installed_package_has_the_line_that_called_it(packaged):
    def decode():
        return packaged(5)

    error = raised(decode)
    line = decode.__code__.co_firstlineno + 1
    assert place_of_error(error.__traceback__) == f"cache_package.py:2 called from test_places.py:{line}"
    assert sentence_of(error).startswith("ValueError: length 5 is not supported (cache_package.py:2 called from ")


def test_an_error_of_the_program_has_its_line_alone():
    def decode():
        raise ValueError("length 5")

    line = decode.__code__.co_firstlineno + 1
    assert place_of_error(raised(decode).__traceback__) == f"test_places.py:{line}"
