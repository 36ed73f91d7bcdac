"""The change that corrects the cause in llama-cpp-python."""

from __future__ import annotations

from mends.mending import Change, Edit

OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "processors get undecided drafts as part of the text": (
        Edit(
            "llama_cpp.llama:Llama.sample",
            "    tmp_sampler = False\n",
            "    tmp_sampler = False\n    self._decided = self.n_tokens if idx is None else idx + 1\n",
        ),
        Edit(
            "llama_cpp.llama:Llama._init_sampler",
            "logit_processor(self._input_ids,",
            "logit_processor(self._input_ids[: self._decided],",
        ),
    ),
}
