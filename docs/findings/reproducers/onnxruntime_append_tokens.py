"""onnxruntime-genai 0.18.0: a token that was generated just before ``append_tokens`` is never fed to the model.

    python onnxruntime_append_tokens.py [FOLDER]

FOLDER holds a model of onnxruntime-genai; left out, the tiny one of this repository. Status 0 fixed, 1 present, 125
cannot be tested. Without speculation: generate one token, append another, and look at the logits. They must be those
after the whole text. They are those of a text whose generated token nobody has read.
"""

import shutil
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnxruntime_genai as og
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

OURS = Path(__file__).parents[3] / "specverify" / "engines" / "onnxruntime" / "models"
PROMPT, APPENDED = [3, 1, 2, 3, 1], 1


def folder():
    made = Path(tempfile.mkdtemp())
    shutil.copy(OURS / "target.onnx", made / "model.onnx")
    shutil.copy(OURS / "genai_config.json", made)
    return str(made)


def generator(model, tokens):
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=16)
    made = og.Generator(model, parameters)
    made.append_tokens(tokens)
    return made


def present():
    model = og.Model(sys.argv[1] if len(sys.argv) > 1 else folder())
    continued = generator(model, PROMPT)
    continued.generate_next_token()
    generated = int(continued.get_next_tokens()[0])
    continued.append_tokens([APPENDED])
    whole = generator(model, [*PROMPT, generated, APPENDED])
    got, expected = (np.ravel(each.get_logits()).round(3) for each in (continued, whole))
    print(f"onnxruntime-genai {og.__version__}; prompt {PROMPT}, generated {generated}, appended {APPENDED}")
    print(f"expected {expected.tolist()}, the logits after the whole text\ngot      {got.tolist()}")
    if not (len(expected) and np.isfinite(expected).all()):
        raise ValueError("the logits after the whole text are no numbers")
    return len(got) != len(expected) or not np.abs(got - expected).max() <= 0.01


try:
    sys.exit(int(present()))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
