"""Where other people's code is, and how one function of it is taken without what the rest of its file imports."""

from __future__ import annotations
import __future__

import ast
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest


class Source(NamedTuple):
    """A repository of GitHub at one of its commits or tags."""

    repository: str
    commit: str
    paths: tuple[str, ...]
    """What is taken of it."""


_PYEXECUTOR = "tensorrt_llm/_torch/pyexecutor/sampling_utils"
SOURCES = {
    "DeepSpec": Source("deepseek-ai/DeepSpec", "afdfa7c9382a3341a3e6f17756dd816da79f132c", ("deepspec",)),
    "EAGLE": Source("SafeAILab/EAGLE", "cb7e0841fe0c206c6ed74a197ad5e2a1f13f5a2b", ("eagle",)),
    "Medusa": Source("FasterDecoding/Medusa", "e2a5d20c048a9b0a4092e6933c34313687422518", ("medusa/model",)),
    "Sequoia": Source("Infini-AI-Lab/Sequoia", "0ff3ff71475ca148f2dfb7545e0de5caf5c67b39", ("Tree", "utils.py")),
    "Speculative-Decoding": Source(
        "romsto/Speculative-Decoding", "db7db67604359d0380c330c240c276ec1f85ba65", ("sampling", "utils")
    ),
    "Speculative-Sampling": Source(
        "shreyansh26/Speculative-Sampling",
        "81fb3b2720dfc0725ac688f485da9dfbc3c02e22",
        ("speculative_sampling.py", "utils.py"),
    ),
    "TensorRT-LLM": Source("NVIDIA/TensorRT-LLM", "053c42c948a14cf3c21981179ecc10a7d7ad8fb6", (f"{_PYEXECUTOR}.py",)),
    "gpt-fast": Source("pytorch-labs/gpt-fast", "32971d3129541c5bfb4f715abc33d1c5f408d204", ("generate.py",)),
    "gpt-fast-unbatched": Source("pytorch-labs/gpt-fast", "e2cfa34145e7f14f8390c8ab727f8d7451b26fec", ("generate.py",)),
    "speculative-decoding": Source(
        "lucidrains/speculative-decoding", "72171ac91cd040ad6b67c186ac985e4f50a0c269", ("speculative_decoding",)
    ),
    "vllm-0.6.5": Source("vllm-project/vllm", "v0.6.5", ("vllm/model_executor/layers",)),
    "vllm-0.8.0": Source("vllm-project/vllm", "v0.8.0", ("vllm/model_executor/layers", "vllm/v1")),
    "vllm-0.33.0": Source("vllm-project/vllm", "v0.33.0", ("vllm/v1/sample",)),
    "vllm-ascend": Source(
        "vllm-project/vllm-ascend", "182b75ea84ff13ece27b57391331ef8935410aea", ("vllm_ascend/sample",)
    ),
}


def path_of(name: str, within: str = ".") -> Path:
    """Return a file or folder of a source, below the folder that ``SHIPPED_SOURCES`` names.

    The test is skipped, and says so, where it is not there.
    """
    root = Path(os.environ.get("SHIPPED_SOURCES", "shipped_sources"))
    found = root / name / within
    if not found.exists():
        pytest.skip(f"{found} is not there: {SOURCES[name].repository} at {SOURCES[name].commit} belongs into {root}")
    return found


def functions_of(
    name: str, within: str, *wanted: str, mended: tuple[str, str] | None = None, **given: Any
) -> SimpleNamespace:
    """Return functions of a file as they stand there, over the modules that they are ``given``.

    The rest of the file is not run: what it imports may need a GPU. Tracebacks and verdicts name the file's lines.
    ``mended`` are words that occur once and what is put for them: the control of what is refuted.
    """
    path = path_of(name, within)
    text = path.read_text()
    if mended is not None:
        if text.count(mended[0]) != 1:
            raise ValueError(f"{path} holds {text.count(mended[0])} times {mended[0]!r}, expected once")
        text = text.replace(*mended)
    tree = ast.parse(text)
    kept = [node for node in _definitions(tree.body) if node.name in wanted]
    missing = set(wanted) - {node.name for node in kept}
    if missing:
        raise ValueError(f"{path} defines no {', '.join(sorted(missing))}: another commit than {SOURCES[name].commit}?")
    module = ModuleType(f"shipped_{path.stem}")
    module.__file__, sys.modules[module.__name__] = str(path), module
    vars(module).update(given)
    code = compile(ast.Module(kept, []), str(path), "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, vars(module))
    return SimpleNamespace(**vars(module))


def _definitions(body: Iterable[ast.stmt]) -> Iterable[Any]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
            yield from _definitions(node.body)
        elif isinstance(node, ast.FunctionDef):
            yield node


def module_of(name: str, within: str, **stubs: ModuleType) -> ModuleType:
    """Return a whole file as a module; ``stubs`` stand for modules that it imports, ``__`` for the dots of a name."""
    path = path_of(name, within)
    for stub, module in stubs.items():
        sys.modules.setdefault(stub.replace("__", "."), module)
    specification = importlib.util.spec_from_file_location(f"shipped_{name}_{path.stem}".replace("-", "_"), path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    specification.loader.exec_module(module)
    return module


def stub(**attributes: Any) -> ModuleType:
    """Return a module of these attributes alone."""
    module = ModuleType("stub")
    vars(module).update(attributes)
    return module
