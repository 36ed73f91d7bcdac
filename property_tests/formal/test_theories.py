"""The theories of ``proofs/``: nothing is assumed, every named theorem exists, and what is recorded of them is current.

The default tests need no Coq. Where it is installed, ``--thorough`` compiles the theories and compares the laws of the
programs that are extracted from them with those of the registry.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from property_tests.formal.test_rows_are_the_programs_of_the_theories import random_models, row_law
from specverify.report.formal_proofs import theorems

FOLDER = Path(__file__).parents[2] / "proofs"
FORBIDDEN = (
    *("Admitted", "admit", "give_up", "Abort", "Axiom", "Axioms", "Parameter", "Parameters", "Conjecture"),
    *("Conjectures", "Declare", "bypass_check", "Guard", "Positivity", "Checking"),
)


def load_check():
    """Return ``proofs/check.py`` as a module."""
    spec = spec_from_file_location("proofs_check", FOLDER / "check.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CHECK = load_check()


def without_comments(text):
    """Return a theory without its comments, which may be nested."""
    kept, depth = [], 0
    for part in re.split(r"(\(\*|\*\))", text):
        depth += (part == "(*") - (part == "*)")
        if depth == 0 and part != "*)":
            kept.append(part)
    return "".join(kept)


def assumed_words(text):
    """Return what a theory assumes or leaves open: forbidden words, and variables outside a section."""
    code = without_comments(text)
    words = [word for word in FORBIDDEN if re.search(rf"(?<![\w']){word}(?![\w'])", code)]
    depth = 0
    for line in re.split(r"\.(?=\s)", code):
        first = line.split()[:1]
        depth += (first == ["Section"]) - (first == ["End"])
        if first and first[0] in {"Variable", "Variables", "Hypothesis", "Hypotheses", "Context"} and depth == 0:
            words.append(f"{first[0]} outside a section")
    return words


@pytest.mark.parametrize("name", CHECK.theory_files())
def test_nothing_is_admitted_or_assumed(name):
    assert assumed_words((FOLDER / name).read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text",
    ["Lemma x : True. Admitted.", "Axiom a : False.", "Section S. End S. Variable v : nat.", "Proof. admit. Qed."],
)
def test_an_assumption_is_seen(text):
    assert assumed_words(text)


def test_words_in_comments_assume_nothing():
    assert assumed_words("(** No Axiom, (* nothing Admitted *) here. *) Lemma x : True. Proof. by []. Qed.") == []


def test_every_theory_is_in_the_project():
    assert sorted(path.name for path in FOLDER.glob("*.v")) == sorted(CHECK.theory_files())


def test_the_theories_are_those_that_were_compiled():
    """A changed word changes a digest: compile with ``python proofs/check.py --write``, and read the statements."""
    assert (FOLDER / "digests.txt").read_text("utf-8") == CHECK.digests()


DECLARED = re.compile(r"^(?:Theorem|Corollary|Lemma|Definition|Fixpoint|Inductive) (\w+)", re.MULTILINE)


def named_in_proof(page):
    """Return the steps of the reader's proof of the main theorem, each with the names that it gives in brackets."""
    proof = page.split("**Proof.**")[1].split("\n## ")[0]
    return [re.findall(r"`(\w+)`", step.rsplit("(", 1)[-1]) for step in re.split(r"\n\d\. ", proof)[1:]]


def test_each_step_of_the_proof_of_the_main_theorem_names_its_lemma_and_fits_on_a_screen():
    page = (FOLDER.parent / "docs" / "proofs.md").read_text("utf-8")
    declared = {name for path in FOLDER.glob("*.v") for name in DECLARED.findall(path.read_text("utf-8"))}
    steps = named_in_proof(page)
    assert len(steps) > 5
    assert all(steps)
    assert {name for step in steps for name in step} <= declared
    main = page.split("## The main theorem")[1].split("\n## ")[0]
    assert len(main.splitlines()) <= 50


def test_every_theorem_that_the_page_names_exists():
    page = (FOLDER.parent / "docs" / "proofs.md").read_text("utf-8")
    declared = {name for path in FOLDER.glob("*.v") for name in DECLARED.findall(path.read_text("utf-8"))}
    table = page.split("## The theorems")[1].split("\n## ")[0]
    assert set(re.findall(r"`([a-z_]+)`", table)) <= declared | {"decode"}


needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or shutil.which("ocamlfind") is None,
    reason=f"there is no Coq with OCaml here: {CHECK.INSTALL}",
)


@needs_coq
@pytest.mark.thorough
def test_the_theories_compile_and_rest_on_no_axiom():
    done = subprocess.run([sys.executable, FOLDER / "check.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(CHECK.CLOSED) == len(theorems())


EXTRACTED = {
    "speculative-sampling": {"gamma": 2},
    "sample-and-match": {"gamma": 2},
    "resample-from-target": {"gamma": 2},
    "accept-if-likelier": {"gamma": 2},
    "clamped-scalar-residual": {"gamma": 2},
    "lenience": {"lenience": Fraction(1, 2), "gamma": 2},
    "confidence-dropping": {"threshold": Fraction(1, 3), "gamma": 2},
    "block-verification": {"gamma": 2},
    "hierarchical": {"gamma": 2},
    "rsd": {"branching": (2, 1)},
    "traversal-verification": {"branching": (2, 1), "replacement": False},
}
"""Row -> its options, for the programs that ``extraction/Programs.v`` extracts."""


def all_texts(size, horizon):
    """Return every text of fewer tokens than the horizon, behind nothing."""
    texts = [()]
    for text in texts:
        if len(text) < horizon - 1:
            texts += [(*text, token) for token in range(size)]
    return texts


def case_line(name, p, q, size, horizon, eos, options):
    """Return a case in the words of ``driver.ml``; the prompt of the row stands before every text."""
    parameter = options.get("lenience", options.get("threshold", 0))
    branching = options.get("branching", ())
    words = [name, size, horizon, options.get("gamma", 0), parameter, len(branching), *branching, len(eos), *eos]
    texts = all_texts(size, horizon)
    words.append(len(texts))
    for text in texts:
        words += [len(text), *text, *p((0, 1, *text)), *q((0, 1, *text))]
    return " ".join(map(str, words))


@needs_coq
@pytest.mark.thorough
def test_extracted_programs_have_the_laws_of_the_rows_on_a_thousand_tables(tmp_path):
    CHECK.compile_theories(tmp_path)
    for name in ("Programs.v", "driver.ml"):
        shutil.copy(FOLDER / "extraction" / name, tmp_path)
    CHECK.run_coq(tmp_path, "Programs.v")
    build = ["ocamlfind", "ocamlopt", "-package", "zarith", "-linkpkg", "-w", "-a"]
    subprocess.run([*build, "programs.mli", "programs.ml", "driver.ml", "-o", "laws"], cwd=tmp_path, check=True)
    cases = []
    for number in range(1001):
        name = list(EXTRACTED)[number % len(EXTRACTED)]
        size, horizon, eos = 2 + number % 2, 2 + number % 3 % 2, ((), (1,))[number % 5 == 4]
        cases.append((name, *random_models(f"extracted {number}", size), size, horizon, eos))
    lines = [case_line(name, p, q, size, n, eos, EXTRACTED[name]) for name, p, q, size, n, eos in cases]
    answer = subprocess.run([tmp_path / "laws"], input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = answer.stdout.splitlines()
    assert len(answers) == len(cases)
    for (name, p, q, size, n, eos), line in zip(cases, answers, strict=True):
        found = {
            tuple((tuple(block), accepted) for block, accepted in rounds): Fraction(mass)
            for rounds, mass in json.loads(line)
            if Fraction(mass)
        }
        assert found == row_law(name, p, q, n, eos, EXTRACTED[name]), (name, size, n, eos)
