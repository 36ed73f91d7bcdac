"""Replay a certificate: run the subject on the recorded random numbers of some paths, and compare the results.

For these paths a certificate lists the calls of the subject: arguments, values that libraries returned, and results.
During the replay the libraries return these values, by patches of this file. Any other draw or result raises
``CertificateRefused``.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib
import inspect
import platform
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from specverify.certificates.checker import CertificateRefused, require

OF_RANDOM = ("random", "getrandbits", "_randbelow", "sample", "gauss", "normalvariate", "expovariate", "betavariate",
             "lognormvariate", "weibullvariate", "triangular", "binomialvariate")  # fmt: skip
OF_NUMPY = ("random", "random_sample", "rand", "randn", "uniform", "integers", "randint", "choice", "permutation",
            "permuted", "shuffle", "exponential", "standard_exponential", "gumbel", "logistic", "laplace", "normal",
            "standard_normal", "lognormal", "standard_cauchy", "triangular", "beta", "geometric", "pareto", "power",
            "rayleigh", "weibull", "poisson", "negative_binomial", "logseries", "binomial", "multinomial",
            "hypergeometric")  # fmt: skip
Drawn = deque[list[Any]]
"""Queue of the draws that the replay must still make, each [library, call, value]."""


def digest(file: str) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def versions(names: Iterable[str]) -> dict[str, str]:
    """Return name -> version for Python and for those libraries in ``names`` that are imported."""
    found = {name: str(sys.modules[name].__version__) for name in names if name in sys.modules}
    return {"python": platform.python_version(), **found}


def callable_named(name: str) -> Any:
    """Return the object that ``module:name`` denotes. Raises ``CertificateRefused`` if there is none."""
    module, _, attribute = name.partition(":")
    try:
        result: Any = importlib.import_module(module)
        for part in attribute.split("."):
            result = getattr(result, part)
    except (ImportError, AttributeError) as error:
        raise CertificateRefused(f"the subject {name} is not found: {error}") from error
    return result


def source_of(called: Any) -> str:
    """Return the path of the source file of ``called``, a function, or of its class if it is another object.

    Returns "" if there is no source file.
    """
    return inspect.getsourcefile(called if inspect.isroutine(called) else type(called)) or ""


class NothingToReplay(Exception):  # noqa: N818 - no error of the certificate
    """The certificate lists no path on which the subject could be run; the message is the reason."""


def replay(data: Mapping[str, Any]) -> int:
    """Run the subject on the random numbers of every listed path of a certificate; return the number of runs.

    Raises ``CertificateRefused`` if a source file has changed since, or if a run draws or returns something else.
    Raises ``NothingToReplay`` if ``data``, the content of the certificate, lists no path.
    """
    listed = [(certificate, path) for certificate in data["certificates"] for path in certificate.get("replays", ())]
    if not listed:
        raise NothingToReplay(f"there is no path to replay: {data.get('no_replay', 'the subject draws by name')}")
    called = callable_named(data["function"])
    for name, recorded in data["sources"].items():
        file = source_of(callable_named(name))
        require(not file or digest(file) != recorded, f"the source of {name} is not the one that was examined")
    for library in data["versions"].keys() - {"python"}:
        importlib.import_module({"torch": "torch._dynamo"}.get(library, library))  # loaded by the first mode
    drawn: Drawn = deque()
    try:
        with answered(drawn):
            for certificate, path in listed:
                _check_path(called, certificate, path, drawn)
    except CertificateRefused as reason:
        here = versions(data["versions"])
        other = "" if here == data["versions"] else f" (written with {data['versions']}, checked with {here})"
        raise CertificateRefused(f"{reason}{other}") from reason
    return len(listed)


def _check_path(called: Any, certificate: Mapping[str, Any], path: Mapping[str, Any], drawn: Drawn) -> None:
    where = f"{certificate['scenario']}, the path to {path['ends']}"
    possible = [tokens for tokens, mass in certificate["law"] if Fraction(mass) > 0]
    require(path["ends"] not in possible, f"{where}: the law of the certificate does not have it")
    emitted: list[Any] = []
    for number, call in enumerate(path["calls"]):
        drawn.extend(call["drawn"])
        returned = plain(called(*(read(each) for each in call["args"])))
        here = f"{where}, call {number}"
        require(returned != call["returned"], f"{here}: it returns {returned}, not {call['returned']}")
        require(bool(drawn), f"{here}: {len(drawn)} draws are not made, the first {drawn[0][:2] if drawn else ''}")
        emitted += returned if isinstance(returned, list) else []
    common = min(len(emitted), len(path["ends"]))
    flat = all(type(token) is int for token in [*emitted, *path["ends"]])
    require(flat and emitted[:common] != path["ends"][:common], f"{where}: it ends otherwise")


def plain(value: Any) -> Any:
    """Return ``value`` as JSON data: arrays and tuples become lists, other values are unchanged."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def read(written: Any) -> Any:
    """Return the argument or drawn value that the JSON data ``written`` represent.

    A dictionary describes a list, a tuple, an array, a tensor or a scalar of NumPy, by its ``kind``. Other values
    represent themselves.
    """
    if not isinstance(written, dict):
        return written
    kind = written["kind"]
    if kind in {"list", "tuple"}:
        return (list if kind == "list" else tuple)(map(read, written["items"]))
    library = sys.modules.get(kind) or importlib.import_module(kind)
    dtype = getattr(library, written["dtype"])
    if written.get("scalar"):
        return dtype(written["value"])
    return library.tensor(written["value"], dtype=dtype) if kind == "torch" else library.array(written["value"], dtype)


# Patches


@contextmanager
def answered(drawn: Drawn) -> Iterator[None]:
    """Context manager in which the drawing functions of ``random``, NumPy and torch return the values in ``drawn``.

    ``drawn`` lists the expected calls in order, each as [library, function, value]. Any other call raises
    ``CertificateRefused``.
    """
    with ExitStack() as stack:
        stack.enter_context(_types_patched(random.Random, OF_RANDOM, "random", drawn))
        stack.enter_context(_types_patched(random.SystemRandom, OF_RANDOM, "random", drawn))
        for name in ("random", "getrandbits"):  # bound methods of C, which no patch of the type reaches
            stack.enter_context(_names_patched(getattr(random, name), partial(_taken, "random", name, drawn)))
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            for kind in (numpy.random.Generator, numpy.random.RandomState):
                stack.enter_context(_types_patched(kind, OF_NUMPY, "numpy", drawn))
            for name in filter(partial(hasattr, numpy.random), OF_NUMPY):  # methods of NumPy's own generator
                stack.enter_context(_names_patched(getattr(numpy.random, name), partial(_taken, "numpy", name, drawn)))
        if "torch" in sys.modules:
            stack.enter_context(_torch_patched(drawn))
        yield


def _taken(library: str, name: str, drawn: Drawn, *args: Any, **kwargs: Any) -> Any:
    """Return the value of the next call in ``drawn``, and remove the call from it.

    ``args`` and ``kwargs`` are the arguments of the call: ``shuffle`` reorders its list and returns None, and an
    argument ``out`` receives the value. Raises ``CertificateRefused`` if the next call in ``drawn`` is not one of
    ``library.name``, or if none is left.
    """
    if not drawn or drawn[0][:2] != [library, name]:
        expected = f"{drawn[0][0]}.{drawn[0][1]}" if drawn else "no further draw"
        raise CertificateRefused(f"{library}.{name} is called, the certificate has {expected}")
    value = read(drawn.popleft()[2])
    if name == "shuffle":
        args[0][:] = [args[0][place] for place in value] if isinstance(args[0], list) else args[0][value]
        return None
    if kwargs.get("out") is not None:
        kwargs["out"][...] = value
        return kwargs["out"]
    return value


@contextmanager
def _types_patched(kind: type, names: tuple[str, ...], library: str, drawn: Drawn) -> Iterator[None]:
    """Context manager in which the methods ``names`` of the type ``kind`` return the values in ``drawn``.

    Each call must be the next in ``drawn``, under the method's name and the name ``library``. The methods are restored
    at the end.
    """
    methods = gc.get_referents(kind.__dict__)[0]
    before = dict(methods)
    for name in filter(partial(hasattr, kind), names):
        taken = partial(_taken, library, name, drawn)
        methods[name] = lambda _, *args, taken=taken, **kwargs: taken(*args, **kwargs)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
    try:
        yield
    finally:
        for name in methods.keys() - before.keys():
            del methods[name]
        methods.update(before)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


@contextmanager
def _names_patched(function: Any, stand_in: Callable[..., Any]) -> Iterator[None]:
    """Context manager that replaces ``function`` by ``stand_in`` under every name in every imported module."""
    places = [
        (vars(module), name)
        for module in filter(inspect.ismodule, list(sys.modules.values()))
        for name, value in list(vars(module).items())
        if value is function
    ]
    for names, name in places:
        names[name] = stand_in
    try:
        yield
    finally:
        for names, name in places:
            names[name] = function


def _torch_patched(drawn: Drawn) -> Any:
    """Return a torch mode in which operations that draw return the values in ``drawn``."""
    torch = importlib.import_module("torch")
    mode = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Given(mode):  # type: ignore[misc, valid-type]  # a class that was looked up
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = dict(kwargs or {})
            if torch.Tag.nondeterministic_seeded not in func.tags:
                return func(*args, **named)
            before, result, name = torch.get_rng_state(), func(*args, **named), func.overloadpacket.__name__
            listed = bool(drawn) and drawn[0][:2] == ["torch", name]
            if result.numel() and (listed or not torch.equal(before, torch.get_rng_state())):
                result.copy_(_taken("torch", name, drawn).reshape(result.shape))
            return result

    return Given()
