"""onnxruntime-genai 0.18.0: with n-gram drafts, ``no_repeat_ngram_size`` is dropped without a word.

    python onnxruntime_ngram_no_repeat.py [FOLDER]

FOLDER holds a model of onnxruntime-genai; left out, the tiny one of this repository. Status 0 fixed, 1 present, 125
cannot be tested. Greedy, with and without n-gram drafts: no two tokens may follow each other twice in the text.
"""

import shutil
import sys
import tempfile
from pathlib import Path

try:
    import onnxruntime_genai as og
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "onnxruntime" / "models"
PROMPT = [3, 1, 2, 3, 1]


def text(model, speculative, **options):
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=11, **options)
    if speculative:
        parameters.set_speculative_options(**speculative)
    made = og.Generator(model, parameters)
    made.append_tokens(PROMPT)
    while not made.is_done():
        made.generate_next_token()
    return made.get_sequence(0).tolist()


def repeated(tokens):
    pairs = [tokens[place : place + 2] for place in range(len(tokens) - 1)]
    return [pair for place, pair in enumerate(pairs) if place >= len(PROMPT) - 1 and pair in pairs[:place]]


def present():
    folder = Path(tempfile.mkdtemp())
    if not sys.argv[1:]:
        shutil.copy(OURS / "target.onnx", folder / "model.onnx")
        shutil.copy(OURS / "genai_config.json", folder)
    model = og.Model(sys.argv[1] if sys.argv[1:] else str(folder))
    drafts = {"ngram_size": 2, "max_draft_tokens": 2}
    plain, drafted = (text(model, speculative, no_repeat_ngram_size=2) for speculative in ({}, drafts))
    print(f"onnxruntime-genai {og.__version__}: expected no pair twice: {plain}, repeats {repeated(plain)}")
    print(f"got with n-gram drafts: {drafted}, repeats {repeated(drafted)}")
    if repeated(plain) or not repeated(text(model, drafts)):
        raise ValueError("pairs come twice without drafts too, or never, however it is asked")
    return bool(repeated(drafted))


try:
    sys.exit(int(present()))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
