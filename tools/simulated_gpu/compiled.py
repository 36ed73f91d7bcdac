"""Compile the simulated device against the torch that is installed, once for each state of its sources."""

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
CONSTRAINTS = HERE.parent / "constraints.txt"


def library() -> Path:
    """Return the shared library, compiled if it is not there yet; a process loads it before it imports torch.

    Raises:
        RuntimeError: in one sentence, where torch is another than the one of ``constraints.txt``, where it has CUDA
            itself, or where there is no g++.

    """
    version = importlib.metadata.version("torch")
    tested = re.search(r"^torch==(\S+)", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)[1]
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
    """Compile into ``built``; a library that is half written is never seen under that name."""
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
