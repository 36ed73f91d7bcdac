"""An engine that draws in an extension written in C: nobody can answer its draws, so samples decide, and say so."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sysconfig

import pytest

from specverify.base.verdict import Status
from specverify.testing import SpeculationUndecided, check_engine

SOURCE = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

static uint64_t state = 88172645463325252ULL;

static double uniform(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* One token: 1 with probability p. */
static PyObject *token(PyObject *module, PyObject *args) {
    double p;
    if (!PyArg_ParseTuple(args, "d", &p)) return NULL;
    return PyLong_FromLong(uniform() < p);
}

static PyMethodDef methods[] = {{"token", token, METH_VARARGS, "draw"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "native_coin", NULL, -1, methods};
PyMODINIT_FUNC PyInit_native_coin(void) { return PyModule_Create(&definition); }
"""
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.fixture(scope="module")
def native_coin(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("there is no C compiler (cc, gcc or clang) to build an extension with")
    folder = tmp_path_factory.mktemp("native")
    source, built = folder / "native_coin.c", folder / f"native_coin{sysconfig.get_config_var('EXT_SUFFIX')}"
    source.write_text(SOURCE, "utf-8")
    include = sysconfig.get_path("include")
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", f"-I{include}", source, "-o", built], check=True, timeout=120)
    spec = importlib.util.spec_from_file_location("native_coin", built)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("p", "expected"), [(0.9, Status.HOLDS), (0.6, Status.REFUTED)], ids=["right", "wrong"])
def test_the_exact_tier_is_unknown_and_the_sample_beside_it_decides(native_coin, p, expected):
    found = check_engine(lambda: [native_coin.token(p)], lambda: [native_coin.token(0.9)], sampled=True, on_fail=None)
    by_check = {verdict.check: verdict for verdict in found}
    assert by_check["law_is_target"].status is Status.UNKNOWN
    assert by_check["samples_agree"].status is expected
    seen = by_check["program_is_its_draws"]
    assert seen.status is Status.UNKNOWN
    assert "native_coin.token at test_native_engine.py:" in seen.statement
    assert "sampled=True" in seen.statement


def test_without_a_sample_nothing_is_said_and_the_way_out_is_named(native_coin):
    with pytest.raises(SpeculationUndecided, match=r"unknown[\s\S]*native_coin\.token[\s\S]*sampled=True"):
        check_engine(lambda: [native_coin.token(0.9)], lambda: [native_coin.token(0.9)])


@pytest.mark.thorough
def test_with_a_sample_that_holds_a_right_engine_passes(native_coin):
    assert check_engine(lambda: [native_coin.token(0.9)], lambda: [native_coin.token(0.9)], sampled=True)
