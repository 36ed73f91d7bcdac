"""Cache of proofs in a folder. An entry is valid as long as no source file on which the proof depends has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import specverify
from specverify import reference
from specverify.base.files import reason_of
from specverify.proof.result import Proof, ProofStatus
from specverify.proof.solver import z3
from specverify.proof.symbolic_tables import Model


def kept_proof(folder: Path, asked: Mapping[str, Any], prove: Callable[[], Proof]) -> Proof:
    """Return the cached proof of the statement ``asked``; if there is none, call ``prove`` and cache the result.

    ``asked`` has the arguments of the proof, by name. An entry of ``folder``, the cache, is valid for the same
    arguments, the same version of z3 and the same source files of ``specverify`` and ``reference``. UNKNOWN is not
    cached, because it depends on the time limit. Raises ``ValueError`` if the folder or an entry cannot be used.
    """
    file = folder / f"{_key(asked)}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if file.exists():
            return _read(json.loads(file.read_text("utf-8")))
    except OSError as error:
        raise ValueError(f"the cache {str(folder)!r} cannot be used: {reason_of(error)}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"the proof {str(file)!r} of the cache cannot be read, expected it whole or removed"
        ) from error
    result = prove()
    if result.status is not ProofStatus.UNKNOWN:
        file.write_text(json.dumps(_written(result), indent=1), "utf-8")
    return result


def _key(asked: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((z3.get_version_string(), sorted(asked.items()))).encode())
    for package in (reference, specverify):
        root = Path(package.__file__ or "").parent
        for source in sorted(root.rglob("*.py")):
            digest.update(source.relative_to(root).as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()


def _written(proof: Proof) -> dict[str, Any]:
    model = proof.model and {
        "vocabulary": proof.model.vocabulary,
        "target": [(text, list(map(str, row))) for text, row in proof.model.target.items()],
        "draft": [(text, list(map(str, row))) for text, row in proof.model.draft.items()],
        "choices": list(proof.model.choices.items()),
    }
    return {**proof._asdict(), "model": model, "figures": dict(proof.figures)}


def _read(data: dict[str, Any]) -> Proof:
    kept = data["model"]
    model = kept and Model(
        kept["vocabulary"],
        {tuple(text): tuple(map(Fraction, row)) for text, row in kept["target"]},
        {tuple(text): tuple(map(Fraction, row)) for text, row in kept["draft"]},
        {tuple(question): answer for question, answer in kept["choices"]},
    )
    return Proof(**{**data, "status": ProofStatus(data["status"]), "model": model})
