"""Engines are found wherever they come from, named nowhere else, and one that cannot be used harms no other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import specverify
from specverify import engines
from specverify.engines import GROUP, Engine, Table, found_engines
from specverify.run.catalogue import expanded, find_subject, is_external, reproducer_of, within_table
from specverify.run.listing import everything
from specverify.run.stats import USUAL, plan_statistics
from specverify.subjects.engine import engine_subject
from specverify.subjects.subject import Subject, UnusableSubject

ROOT = Path(__file__).parents[2]
CORE = Path(specverify.__file__).parent
BORROWED = f"from {__name__} import FAKE as ENGINE"
PAPERS = CORE / "reference"
"""Where a wheel has the package of the papers, which name where their code was released."""
WORDS = {
    "crisperwhisper": ("ctranslate2", "generate_speculative"),
    "huggingface": (
        "hugging ?face",
        r"\btransformers\b",
        r"\bhf\b",
        "past_key_values",
        "num_hidden_layers",
        "PreTrained",
        "DynamicCache",
    ),
    "llama": (r"\bllama_cpp", "MinTokensLogitsProcessor"),
    "llamacpp": ("xllamacpp", "common_speculative_type"),
    "lucidrains": (r"from speculative_decoding\b",),
    "mlx": ("mlx_lm", "generate_step"),
    "node_llamacpp": ("node-llama-cpp",),
    "onnxruntime": ("onnxruntime_genai", "set_speculative_options"),
    "openvino": ("openvino_genai", "LLMPipeline"),
    "vllm": ("StructuredOutputsParams", "VLLM_ENABLE_V1_MULTIPROCESSING", r"from vllm\b"),
}
"""Folder -> what nobody else may say: names of the library and of what is in it."""
READS_ITS_FILES = {"huggingface": CORE / "engines" / "vllm"}
"""Folder -> another engine's, which writes checkpoints of that form."""
HAVE_ITS_INTERFACE = {"huggingface": {CORE / "subjects" / "torch_network.py", CORE / "testing" / "networks.py"}}
"""Folder -> files that may name the library: they make networks that are called as its models are."""
RECORDS = re.compile(r'(?:PR|issue) #\d+|(?:PeerStatistic|TestOfOthers)\("')
"""What other projects reported or test is quoted with their names, whatever they are."""


def subject_of(name):
    return engine_subject(lambda: [0], {(0,): 1.0}, name)


FAKE = Engine("the fake engine", "fake", "fake-engine[all]", {"one": "one token"}, subject_of)


@pytest.fixture
def installed(monkeypatch):
    """Install engines, each by its prefix and an object or the place of one, for the length of a test."""

    def install(*given):
        points = [EntryPoint(prefix, place, GROUP) for prefix, place in given]
        monkeypatch.setattr(engines, "entry_points", lambda group: points)
        found_engines.cache_clear()
        return found_engines()

    yield install
    monkeypatch.undo()
    found_engines.cache_clear()


@pytest.fixture
def module(monkeypatch, tmp_path):
    """Write a module that can be imported, and return the place of its ``ENGINE``."""

    def write(name, source):
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return f"{name}:ENGINE"

    return write


# What CONTRIBUTING.md shows


@pytest.fixture
def verified(tmp_path):
    """Install the engine that CONTRIBUTING.md shows in a folder, changed by ``replace``, and run the command line."""

    def run(*arguments, replace=("", "")):
        page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
        source = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "ENGINE = " in block)
        point = re.search(r'\[project\.entry-points\."specverify\.engines"\]\n(.*?)```', page, re.DOTALL)[1]
        assert replace[0] in source
        (tmp_path / "toy_engine").mkdir()
        (tmp_path / "toy_engine" / "__init__.py").write_text(source.replace(*replace), "utf-8")
        installed = tmp_path / "toy_engine-1.dist-info"
        installed.mkdir()
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-engine\nVersion: 1\n", "utf-8")
        (installed / "entry_points.txt").write_text(f"[{GROUP}]\n{point.replace(chr(34), '')}", "utf-8")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
        command = [sys.executable, "-m", "specverify", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.thorough
def test_the_engine_of_the_contributors_page_holds(verified):
    done = verified("verify", "toy:all")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^toy:\S+", done.stdout, re.MULTILINE) == ["toy:all/short", "toy:all/long"]
    assert "holds  law_is_target" in done.stdout


@pytest.mark.thorough
def test_a_bug_planted_in_it_is_refuted(verified):
    done = verified("verify", "toy:long", "--check", "law_is_target", replace=("max(p - q, 0.0)", "p"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "law is target - refuted, " in done.stdout


def test_it_is_listed(verified):
    listed = verified("list", "subjects").stdout
    assert re.search(r"toy:short\s.*one token", listed)
    assert "toy:all" in listed


# Where engines come from


def test_ours_are_found_by_their_entry_points_and_by_their_folders(installed):
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    listed = re.search(r'\[project\.entry-points\."specverify\.engines"\]\n(.*?)\n\n', project, re.DOTALL)[1]
    points = [(line.split(" = ")[0], line.split(" = ")[1].strip('"')) for line in listed.splitlines()]
    folders = {folder.parent.name for folder in (CORE / "engines").glob("*/__init__.py")}
    assert {place.split(".")[2].partition(":")[0] for _, place in points} == folders == set(WORDS)
    by_points, by_folders = installed(*points), installed()
    assert by_points == by_folders
    assert set(by_folders.engines) == {prefix for prefix, _ in points}
    assert not by_folders.unusable


def test_an_engine_of_another_package_is_a_subject_like_any(installed, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "FAKE", FAKE._replace(tables={"all": Table("all", lambda: ["a", "b"])}))
    assert is_external("fake:one")
    installed(("fake", f"{__name__}:FAKE"))
    assert not is_external("fake:one")
    assert find_subject("fake:one").name == "fake:one"
    assert expanded("fake:all") == ("fake:all/a", "fake:all/b")
    assert find_subject("fake:all/a").name == "fake:all/a"
    assert (within_table("fake:all/a"), within_table("fake:one"), within_table("a:b/c")) == ("a", "", "")
    assert reproducer_of("fake:one") is None
    for wrong, hint in (("fake:onne", "fake:one"), ("fake:all/c", "fake:all/")):
        with pytest.raises(UnusableSubject, match=f"there is no subject '{wrong}', did you mean {hint}"):
            find_subject(wrong)


def test_an_engine_without_a_setting_to_sample_is_left_out_of_the_statistics_unless_it_is_named(installed, monkeypatch):
    bare = FAKE._replace(load=lambda name: Subject(name, "", frozenset()))
    monkeypatch.setattr(sys.modules[__name__], "FAKE", bare)
    monkeypatch.setattr(engines, "_own_places", lambda: ())
    installed(("fake", f"{__name__}:FAKE"))
    assert all(item.subject.startswith("reference:") for item in plan_statistics(1e-6, 0, USUAL).settings)
    with pytest.raises(UnusableSubject, match="fake:one has no setting to sample"):
        plan_statistics(1e-6, 0, USUAL, ["fake:one"])


def test_saying_what_engines_there_are_imports_none():
    program = (
        "import sys\nfrom specverify.run.listing import everything\n"
        "print(len(everything()['subjects']), sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"[1-9]\d* \[\]\n", done.stdout)


# What is wrong with one concerns no other


@pytest.mark.parametrize(
    ("prefix", "source", "said"),
    [
        ("fake", "raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("fake", "import nothing_of_the_kind", "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        ("fake", "", "AttributeError: .* has no attribute 'ENGINE'"),
        ("fake", "ENGINE = 1", "it is a int, expected a specverify.engines.Engine"),
        ("other", BORROWED, "it has the prefix 'fake', expected that of its"),
        ("reference", BORROWED, "a prefix is lower case, .* not reference"),
        ("Fake Engine", BORROWED, "a prefix is lower case"),
        ("hf", BORROWED, "several packages claim the prefix, expected one"),
    ],
)
def test_an_engine_that_cannot_be_used_is_named_where_it_is_asked_for_and_listed(
    prefix, source, said, installed, module
):
    found = installed((prefix, module("broken_engine", source)))
    assert list(found.unusable) == [prefix]
    assert re.search(said, found.unusable[prefix])
    assert found.unusable[prefix] in [row["summary"] for row in everything()["subjects"]]
    assert find_subject("reference:autoregressive").name == "reference:autoregressive"
    if prefix not in {"reference", "Fake Engine"}:
        with pytest.raises(UnusableSubject, match="cannot be used"):
            find_subject(f"{prefix}:one")


def missing(name):
    raise ModuleNotFoundError("No module named 'fake'")


def wrong(name):
    raise KeyError(name)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (missing, r"fake:one cannot be loaded: No module named 'fake' \(pip install \"fake-engine\[all\]\"\)"),
        (wrong, "fake:one cannot be loaded: KeyError: 'one'"),
        (lambda name: 1, "fake:one is loaded as a int, expected a Subject"),
    ],
)
def test_a_subject_that_cannot_be_loaded_is_said_in_one_sentence(load, said, installed, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "FAKE", FAKE._replace(load=load))
    installed(("fake", f"{__name__}:FAKE"))
    with pytest.raises(UnusableSubject, match=said):
        find_subject("fake:one")


def test_an_engine_that_is_not_installed_says_what_to_install():
    program = textwrap.dedent("""
        import sys
        sys.modules["torch"] = None
        from specverify.run.catalogue import expanded, find_subject
        for what, name in ((find_subject, "hf:plain"), (expanded, "hf:all")):
            try:
                what(name)
            except Exception as error:
                print(type(error).__name__, error)
    """)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    for line, name in zip(done.stdout.splitlines(), ("hf:plain", "hf:all"), strict=True):
        assert line.startswith(f"UnusableSubject {name} cannot be loaded: ")
        assert 'pip install "specverify-suite[hf]"' in line


# No word of an engine outside its folder


@cache
def text_of(file):
    return file.read_text("utf-8")


def lines_with(words, files):
    """Return the lines that hold any of ``words`` and are no record of another project's."""
    lines = [(file, line) for file in files if words.search(text_of(file)) for line in text_of(file).splitlines()]
    return [f"{file.name}: {line}" for file, line in lines if words.search(line) and not RECORDS.search(line)]


@pytest.mark.parametrize("name", WORDS)
def test_nothing_outside_its_folder_says_a_word_of_an_engine(name):
    words = re.compile("|".join(WORDS[name]), re.IGNORECASE)
    allowed = {CORE / "engines" / name, PAPERS, READS_ITS_FILES.get(name, PAPERS)}
    allowed |= HAVE_ITS_INTERFACE.get(name, set())
    others = [file for file in sorted(CORE.rglob("*.py")) if allowed.isdisjoint((file, *file.parents))]
    assert lines_with(words, others) == []


@pytest.mark.parametrize(("name", "word"), [(name, word) for name, words in WORDS.items() for word in words])
def test_the_folder_itself_says_it(name, word):
    """The control of the test above: a word that is never said would not be missed."""
    assert lines_with(re.compile(word, re.IGNORECASE), sorted((CORE / "engines" / name).rglob("*.py")))
