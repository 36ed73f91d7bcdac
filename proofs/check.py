"""Compile the theories, print every theorem with its assumptions, and compare the statements with those recorded.

    python proofs/check.py            compile and compare
    python proofs/check.py --write    also record the statements and the digests of the files

The statements stand in ``statements.txt``, as Coq prints them. ``digests.txt`` holds the SHA-256 of every theory as it
was last compiled, so that a change shows where there is no Coq.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
COVERAGE = HERE.parent / "specverify" / "report" / "formal_proofs.toml"
CLOSED = "Closed under the global context"
QUIET = ("-w", "-notation-overridden,-ambiguous-paths")
INSTALL = (
    "apt-get install coq libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra ocaml ocaml-findlib libzarith-ocaml-dev"
)


def theory_files() -> list[str]:
    """Return the names of the theories in the order of their dependencies, as ``_CoqProject`` lists them."""
    lines = (HERE / "_CoqProject").read_text("utf-8").splitlines()
    return [line for line in lines if line.endswith(".v")]


def theorem_names() -> dict[str, str]:
    """Return theorem -> the theory that it is in."""
    entries = tomllib.loads(COVERAGE.read_text("utf-8"))["theorems"]
    return {name: entry["file"] for name, entry in entries.items()}


def digests() -> str:
    """Return a line for every theory, program and driver: its SHA-256 and its name."""
    names = [*theory_files(), "extraction/Programs.v", "extraction/driver.ml"]
    return "".join(f"{hashlib.sha256((HERE / name).read_bytes()).hexdigest()}  {name}\n" for name in names)


def run_coq(folder: Path, file: str) -> str:
    """Compile ``file`` in ``folder`` and return what Coq prints. Raises ``SystemExit`` with its message if it fails."""
    done = subprocess.run(  # noqa: S603 - coqc, found by coqc_path
        [coqc_path(), "-R", str(folder), "Lossless", *QUIET, file],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{file} does not compile:\n{done.stdout}{done.stderr}")
    return done.stdout


def coqc_path() -> str:
    """Return where coqc is. Raises ``SystemExit`` with the line that installs it."""
    path = shutil.which("coqc")
    if path is None:
        raise SystemExit(f"there is no coqc: {INSTALL}")
    return path


def compile_theories(folder: Path) -> None:
    """Copy the theories into ``folder`` and compile them there."""
    for name in theory_files():
        shutil.copy(HERE / name, folder)
        run_coq(folder, name)


def ask(folder: Path, command: str) -> dict[str, str]:
    """Return theorem -> what Coq answers to ``command`` about it, such as ``Print Assumptions``."""
    modules = " ".join(Path(name).stem for name in theory_files())
    lines = [f"From Lossless Require Import {modules}.", "Set Printing Width 110."]
    for theorem, file in theorem_names().items():
        lines += [f'Eval compute in "{theorem}"%string.', f"{command} {file}.{theorem}."]
    text = "Require Import String.\n" + "\n".join(lines) + "\n"
    (folder / "Ask.v").write_text(text, "utf-8")
    answers: dict[str, str] = {}
    current = ""
    for line in run_coq(folder, "Ask.v").splitlines():
        if line.startswith('     = "'):
            current = line.split('"')[1]
            answers[current] = ""
        elif line.strip() != ": string":
            answers[current] += line + "\n"
    return answers


def statements_text(folder: Path) -> str:
    """Return all statements as Coq prints them."""
    return "\n".join(statement.rstrip() + "\n" for statement in ask(folder, "Check @").values())


def main(*, write: bool) -> None:
    """Compile, print and compare. Raises ``SystemExit`` with a sentence if anything is not as recorded."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compile_theories(folder)
        assumptions = ask(folder, "Print Assumptions")
        for theorem, answer in assumptions.items():
            print(f"{theorem}: {answer.strip()}")
        assumed = [theorem for theorem, answer in assumptions.items() if answer.strip() != CLOSED]
        if assumed or len(assumptions) != len(theorem_names()):
            raise SystemExit(f"these theorems rest on assumptions: {', '.join(assumed) or 'some were not printed'}")
        statements = statements_text(folder)
    if write:
        (HERE / "statements.txt").write_text(statements, "utf-8")
        (HERE / "digests.txt").write_text(digests(), "utf-8")
    elif statements != (HERE / "statements.txt").read_text("utf-8"):
        raise SystemExit("a statement is not the one in proofs/statements.txt: read it, then run with --write")
    print(f"{len(assumptions)} theorems, no axiom, statements as recorded")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record statements and digests")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    main(write=parser.parse_args().write)
