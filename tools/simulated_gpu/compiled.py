"""Compile the simulated CUDA device against the installed torch, once for each version of its sources."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = (HERE / "device.cpp", *sorted(HERE.glob("*.h")))
CONSTRAINTS = HERE.parents[1] / "constraints.txt"


def tested_torch() -> str:
    """Return the version of torch in ``constraints.txt``, for which the device is written."""
    return re.search(r"^torch==(\S+)", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)[1]


def library() -> Path:
    """Return the path of the shared library, compiled if necessary. Load it before torch is imported.

    Raises:
        RuntimeError: In one sentence, if torch is not the version of ``constraints.txt`` or supports CUDA itself, or if
            g++ is missing.
    """
    version, tested = importlib.metadata.version("torch"), tested_torch()
    if version.partition("+")[0] != tested:
        raise RuntimeError(f"the simulated device is made for torch {tested} of constraints.txt, found torch {version}")
    torch = Path(importlib.util.find_spec("torch").origin).parent
    if (torch / "lib" / "libtorch_cuda.so").exists():
        raise RuntimeError(f"the simulated device needs a torch without CUDA, found torch {version} with it")
    state = hashlib.sha256(version.encode() + b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:16]
    built = HERE / "build" / f"device-{state}.so"
    if not built.exists():
        compile_against(torch, built)
    return built


def compile_against(torch: Path, built: Path) -> None:
    """Compile the device against ``torch`` into the file ``built``, which exists only when it is complete."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise RuntimeError("the simulated device is compiled by g++, and there is none: install Debian's package g++")
    built.parent.mkdir(exist_ok=True)
    part = built.with_suffix(f".{os.getpid()}")
    libraries = torch / "lib"
    options = ("-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-isystem", torch / "include")
    linked = ("-L", libraries, f"-Wl,-rpath,{libraries}", "-ltorch_cpu", "-lc10")
    subprocess.run([compiler, *options, SOURCES[0], *linked, "-o", part], check=True)
    part.replace(built)
