"""node-llama-cpp: bindings of llama.cpp for Node.js, called through a process that answers in lines of JSON."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(
    __name__,
    name="node-llama-cpp",
    requirement="specverify-suite, and npm install --omit=optional node-llama-cpp @node-llama-cpp/linux-x64",
    call="LlamaContextSequence.evaluate",
)
