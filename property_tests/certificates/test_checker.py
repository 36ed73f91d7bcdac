"""Certificates of proofs: accepted as written, refused when corrupted, checked without the solver."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from specverify.certificates import CertificateRefused, check_certificate
from specverify.certificates.checker import Condition, contradicted
from specverify.cli import app

pytest.importorskip("z3", reason='certificates are written with z3: pip install "specverify-suite[proof]"')

from specverify import proof
from specverify.proof.certificate import written_option
from specverify.proof.contradiction import Contradictions
from specverify.proof.polynomial import Polynomial
from specverify.proof.solver import SignCondition
from test_support.lines_of_code import lines_of_code

PROVED, REFUTED, UNKNOWN = proof.ProofStatus


@cache
def written(name: str, vocabulary: int, gamma: int, what: str) -> dict[str, Any]:
    """Return the certificate of a statement, as data."""
    return json.loads(text_of(name, vocabulary, gamma, what))


@cache
def text_of(name: str, vocabulary: int, gamma: int, what: str) -> str:
    result = proof.prove(name, vocabulary, gamma, what)
    assert result.status is not UNKNOWN
    file = Path(pytest.cache_folder) / f"{name}-{vocabulary}-{gamma}-{what}.json"
    proof.certify(result, file)
    return file.read_text("utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(pytest, "cache_folder", tmp_path, raising=False)
    return tmp_path


def checked(data: Any, folder: Path, tables: int = 20) -> Any:
    file = folder / "certificate.json"
    file.write_text(json.dumps(data), "utf-8")
    return check_certificate(file, tables)


PROOFS = [
    ("speculative-sampling", 2, 1, "law"),
    ("speculative-sampling", 2, 2, "law"),
    ("speculative-sampling", 2, 1, "stopping"),
    ("egag", 2, 1, "law"),
    ("nasd", 2, 1, "law"),
    ("specinfer", 2, 1, "law"),
    ("block-verification", 2, 1, "law"),
    ("sample-and-match", 2, 1, "law"),
    ("slrs", 2, 1, "law"),
]


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("statement", PROOFS, ids=str)
def test_a_proof_is_accepted_with_the_paths_that_the_search_saw(statement, folder):
    accepted = checked(written(*statement), folder)
    assert accepted.figures["paths"] > 0
    assert accepted.figures["cells"] >= accepted.figures["outcomes"]
    assert accepted.figures["runs"] > 0
    assert "have the target's law" in accepted.statement


@pytest.mark.parametrize("name", ["resample-from-target", "accept-if-likelier", "nasd-seed-rule", "judge-decoding"])
def test_a_refutation_is_accepted_and_its_masses_are_computed_again(name, folder):
    data = written(name, 2, 1, "law")
    assert data["verdict"] == "refuted"
    assert f"has mass {data['mass']}" in checked(data, folder).statement
    with pytest.raises(CertificateRefused, match="not what is stated"):
        checked({**data, "mass": str(Fraction(data["mass"]) + Fraction(1, 7))}, folder)
    with pytest.raises(CertificateRefused, match="no pmf"):
        checked({**data, "target": [[text, ["1"] * len(row)] for text, row in data["target"]]}, folder)


# Corrupted certificates


def nodes(tree: Any) -> Iterator[Any]:
    """Yield every node of a tree."""
    yield tree
    branches = tree["branches"].values() if "draw" in tree else (tree.get("yes"), tree.get("no"))
    for branch in branches:
        if branch is not None:
            yield from nodes(branch)


def cells(cell: Any) -> Iterator[Any]:
    """Yield every cell of a sum, the outer ones too."""
    yield cell
    for inner in cell.get("cells", {}).values():
        yield from cells(inner)


def every(data: Any, kind: str) -> list[Any]:
    """Return all nodes of a kind, or all cells (kind "cell")."""
    if kind == "cell":
        return [
            cell for place in data["places"] for item in place["outcomes"].values() for cell in cells(item["cells"])
        ]
    return [node for place in data["places"] for node in nodes(place["tree"]) if kind in node]


def other_token(data: Any, rng: random.Random) -> None:
    end = rng.choice([node for node in every(data, "end") if node["end"]])
    place = rng.randrange(len(end["end"]))
    end["end"][place] = (end["end"][place] + 1) % data["vocabulary"]


def lost_branch(data: Any, rng: random.Random) -> None:
    node = rng.choice([node for node in every(data, "draw") if len(node["branches"]) > 1])
    outcome = rng.choice(sorted(node["branches"]))
    del node["branches"][outcome]
    node["impossible"][outcome] = rng.choice(
        [{"terms": [], "equalities": []}, {"terms": [["1", []]], "equalities": []}]
    )


def swapped_branches(data: Any, rng: random.Random) -> None:
    node = rng.choice(
        [
            node
            for node in every(data, "draw")
            if len(node["branches"]) > 1 and len({json.dumps(b) for b in node["branches"].values()}) > 1
        ]
    )
    one, other = rng.sample(sorted(node["branches"]), 2)
    node["branches"][one], node["branches"][other] = node["branches"][other], node["branches"][one]


def swapped_answers(data: Any, rng: random.Random) -> None:
    node = rng.choice([node for node in every(data, "ask") if node["yes"] != node["no"]])
    node["yes"], node["no"] = node["no"], node["yes"]


def lost_answer(data: Any, rng: random.Random) -> None:
    node = rng.choice([node for node in every(data, "ask") if node["yes"] and node["no"]])
    node[rng.choice(["yes", "no"])] = None
    node["impossible"] = {"terms": [["1", [0, 1]]], "equalities": []}


def other_weight(data: Any, rng: random.Random) -> None:
    node = rng.choice(every(data, "draw"))
    place = rng.randrange(len(node["draw"]))
    node["draw"][place] = (node["draw"][place] + 1) % len(data["ratios"])


def other_coefficient(data: Any, rng: random.Random) -> None:
    used = sorted({data["ratios"][number][0] for node in every(data, "draw") for number in node["draw"]})
    polynomial = data["polynomials"][rng.choice([number for number in used if data["polynomials"][number]])]
    monomial = rng.choice(sorted(polynomial))
    polynomial[monomial] = str(Fraction(polynomial[monomial]) * 2)


def lost_term(data: Any, rng: random.Random) -> None:
    place = rng.choice(data["places"])
    del place["outcomes"][rng.choice(sorted(place["outcomes"]))]["terms"][0]


def term_twice(data: Any, rng: random.Random) -> None:
    place = rng.choice(data["places"])
    terms = place["outcomes"][rng.choice(sorted(place["outcomes"]))]["terms"]
    terms.append(copy.deepcopy(terms[0]))


def lost_cell(data: Any, rng: random.Random) -> None:
    cell = rng.choice([cell for cell in every(data, "cell") if "by" in cell])
    del cell["cells"][rng.choice(sorted(cell["cells"]))]


def one_cell_for_all(data: Any, rng: random.Random) -> None:
    cell = rng.choice([cell for cell in every(data, "cell") if "by" in cell])
    inner = copy.deepcopy(cell["cells"][rng.choice(sorted(cell["cells"]))])
    cell.clear()
    cell.update(inner)


def empty_cell(data: Any, rng: random.Random) -> None:
    cell = rng.choice([cell for cell in every(data, "cell") if "by" not in cell and "empty" not in cell])
    cell.clear()
    cell["empty"] = {"terms": [["1", [0]]], "equalities": []}


def lost_place(data: Any, rng: random.Random) -> None:
    del data["places"][rng.randrange(len(data["places"]))]


def shared_unknown(data: Any, rng: random.Random) -> None:
    rows = rng.choice([place["rows"] for place in data["places"] if len(place["rows"]) > 1])
    rows[0][2] = rows[1][2]


def other_algorithm(data: Any, rng: random.Random) -> None:
    others = ["resample-from-target", "sample-and-match", "speculative-sampling", "autoregressive"]
    data["algorithm"] = rng.choice([name for name in others if name != data["algorithm"]])
    data["options"] = {} if data["algorithm"] == "autoregressive" else {"gamma": data["gamma"]}


def other_gamma(data: Any, rng: random.Random) -> None:
    data["gamma"] += 1


def other_format(data: Any, rng: random.Random) -> None:
    del data[rng.choice(["polynomials", "ratios", "places", "options", "what", "vocabulary", "any_length"])]


CORRUPTIONS: tuple[Callable[[Any, random.Random], None], ...] = (
    other_token,
    lost_branch,
    swapped_branches,
    swapped_answers,
    lost_answer,
    other_weight,
    other_coefficient,
    lost_term,
    term_twice,
    lost_cell,
    one_cell_for_all,
    empty_cell,
    lost_place,
    shared_unknown,
    other_algorithm,
    other_gamma,
    other_format,
)


@pytest.mark.thorough(keep=48)
@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda corrupt: corrupt.__name__)
@pytest.mark.parametrize("statement", PROOFS[:3], ids=str)
def test_a_corrupted_certificate_is_refused(corrupt, statement, folder):
    """Three certificates, seventeen corruptions, four places of each: 204."""
    for seed in range(4):
        data = json.loads(text_of(*statement))
        corrupt(data, random.Random(seed))
        assert data != written(*statement)
        with pytest.raises(CertificateRefused):
            checked(data, folder)


def test_weights_that_add_up_to_one_only_where_the_branch_is_taken_need_a_reason(folder):
    """SLRS: where q(0) = 1 the weights of a draw are 0 and q(0)."""
    sums = [node["whole"] for node in every(written("slrs", 2, 1, "law"), "draw") if node["whole"]]
    assert sums
    for lost in ("<", ">"):
        for reason in (None, {"terms": [["1", [0]]], "equalities": []}):
            data = json.loads(text_of("slrs", 2, 1, "law"))
            whole = next(node["whole"] for node in every(data, "draw") if node["whole"])
            del whole[lost]
            whole |= {lost: reason} if reason else {}
            with pytest.raises(CertificateRefused, match="do not add up to 1"):
                checked(data, folder)


def test_without_the_runs_another_algorithm_is_not_noticed(folder):
    """The exact part is about the tree alone; the name of the algorithm is tied to it by the runs."""
    data = {**written("speculative-sampling", 2, 1, "law"), "algorithm": "sample-and-match"}
    assert checked(data, folder, tables=0).figures["runs"] == 0
    with pytest.raises(CertificateRefused, match="the tree does not"):
        checked(data, folder)


# Contradictions


def test_a_contradiction_multiplies_out_and_not_otherwise():
    positive = Condition({(0,): Fraction(1)}, ">")
    negative = Condition({(0,): Fraction(2)}, "<")
    shown = {"terms": [["2", [0]], ["1", [1]]], "equalities": []}
    assert contradicted(shown, [positive, negative], []) == ""
    assert "do not add up" in contradicted({**shown, "terms": [["1", [0]], ["1", [1]]]}, [positive, negative], [])
    weak = [Condition({(0,): Fraction(1)}, ">="), Condition({(0,): Fraction(2)}, "<=")]
    assert "no term is known to be positive" in contradicted(shown, weak, [])
    assert "not known to be non-negative" in contradicted({**shown, "terms": [["-1", [0]]]}, [positive, negative], [])
    zero = Condition({(0,): Fraction(1)}, "=")
    by_equality = {"terms": [["1", [0]]], "equalities": [[0, 1]]}
    assert contradicted(by_equality, [positive, zero], [{(): Fraction(-1)}]) == ""
    assert "no equation" in contradicted(by_equality, [positive, negative], [{(): Fraction(-1)}])
    either = [Condition({(0,): Fraction(1)}, "!="), zero]
    parts = {"terms": [["1", [2]]], "equalities": [[0, 1]]}
    upper, lower = {**parts, "equalities": [[0, 1]]}, {**parts, "equalities": [[1, 1]]}
    constants = [{(): Fraction(-1)}, {(): Fraction(1)}]
    assert contradicted({"split": 0, "above": upper, "below": lower}, either, constants) == ""
    assert "(" not in contradicted({"split": 1, "above": upper, "below": lower}, either, constants)


def test_what_is_possible_is_not_contradicted():
    numbers: dict[Polynomial, int] = {}
    finder = Contradictions(lambda polynomial: numbers.setdefault(polynomial, len(numbers)))
    one = Polynomial({(0,): 1})
    signs = {"+": frozenset({1}), "-": frozenset({-1}), "0": frozenset({0}), "+-": frozenset({1, -1})}
    assert finder.find([SignCondition(one, signs["+"])]) is None
    assert finder.find([SignCondition(one, signs["+-"]), SignCondition(one, signs["-"])]) is None
    assert finder.find([SignCondition(one, signs["+"]), SignCondition(one, signs["-"])]) is not None
    square = Polynomial({(0, 0): 1})
    assert finder.find([SignCondition(one, signs["+-"]), SignCondition(square, signs["0"])]) is not None


# The checker and the command


def test_the_checker_is_small_and_imports_no_solver_no_enumeration_and_no_interception():
    from specverify import certificates

    checker = (Path(certificates.__file__).parent / "checker.py").read_text("utf-8")
    assert lines_of_code(checker) < 220
    code = (
        "import sys, specverify.certificates\n"
        "bad = ('z3', 'torch', 'scipy', *(f'specverify.{name}' for name in ('intercept', 'laws', 'proof', 'run')))\n"
        "sys.exit([name for name in sys.modules if name.startswith(bad)] or None)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_options_of_algorithms_are_written_and_read_back():
    from specverify.certificates.runs import read_option

    for value in (3, "x", None, True, 0.5, Fraction(1, 3), (0, (1, Fraction(1, 2))), [1, 2], {(0, 1): Fraction(1, 2)}):
        again = read_option(json.loads(json.dumps(written_option(value))))
        assert again == value
        assert type(again) is type(value)


def test_the_commands_write_and_check(folder):
    file = folder / "proof.json"
    runner = CliRunner()
    assert runner.invoke(app, ["prove", "speculative-sampling", "--certificate", str(file)]).exit_code == 0
    accepted = runner.invoke(app, ["check-certificate", str(file)])
    assert accepted.exit_code == 0
    assert accepted.output.startswith("accepted: for every target and draft over 2 tokens")
    data = json.loads(file.read_text("utf-8"))
    replayed = runner.invoke(app, ["check-certificate", str(file), "--replay"])
    assert replayed.exit_code == 2
    assert "the certificate is that of a proof, and only those of enumerations are replayed" in replayed.output
    for changed, said in (
        ({"any_length": None}, "any_length is None, expected a value of type bool"),
        ({"vocabulary": "2"}, "vocabulary is 2, expected a value of type int"),
        ({"options": None}, "options is None, expected a value of type dict"),
    ):
        file.write_text(json.dumps({**data, **changed}), "utf-8")
        assert runner.invoke(app, ["check-certificate", str(file)]).output == f"refused: {said}\n"
    file.write_text(json.dumps({name: value for name, value in data.items() if name != "places"}), "utf-8")
    damaged = runner.invoke(app, ["check-certificate", str(file)])
    assert damaged.output == "refused: the certificate is incomplete or malformed: a part has no 'places'\n"
    other_token(data, random.Random(0))
    file.write_text(json.dumps(data), "utf-8")
    refused = runner.invoke(app, ["check-certificate", str(file)])
    assert refused.exit_code == 1
    assert refused.output.startswith("refused: the round after (0,)")
    file.write_text("{}", "utf-8")
    assert runner.invoke(app, ["check-certificate", str(file)]).exit_code == 2
    refused = runner.invoke(app, ["prove", "speculative-sampling", "--what", "acceptance", "--certificate", str(file)])
    assert refused.exit_code == 2
    assert "there are no certificates of 'acceptance'" in refused.output
