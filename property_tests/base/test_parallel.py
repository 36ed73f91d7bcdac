"""The same work shared among other processes: clusters of Dask and Ray with two workers say what this machine says."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specverify.base.parallel import WorkerDied, as_finished, in_parallel, shared_among
from specverify.cli import app
from test_support.samplers.campaigns import HERE, blocks_in, plan_in, run

NAMES = "reference:speculative-sampling", "mutant:inverted-ratio"


def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="the extra scale is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1", silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


def ray_cluster():
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    ended_by = signal.getsignal(signal.SIGTERM)
    started = ray.init("local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    yield started.address_info["gcs_address"]
    ray.shutdown()
    signal.signal(signal.SIGTERM, ended_by)


CLUSTERS = {"dask": dask_cluster, "ray": ray_cluster}
STARTED_ONCE = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in CLUSTERS]


@pytest.fixture(scope="module", params=STARTED_ONCE)
def cluster(request):
    """Start a cluster of two workers; yield its backend and where its scheduler listens."""
    folder = os.getcwd()  # noqa: PTH109 - as it is put back
    os.chdir(HERE)
    started = contextmanager(CLUSTERS[request.param])
    with pytest.MonkeyPatch.context() as patch, started() as scheduler:
        patch.setenv("PYTHONPATH", str(HERE.parent.parent))
        yield request.param, scheduler
    os.chdir(folder)


def invoke(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    return result.exit_code, " ".join(result.output.split())


def named(cluster):
    return "--backend", cluster[0], "--scheduler", cluster[1]


def told(file):
    data = json.loads(file.read_text("utf-8"))
    for verdict in data["verdicts"]:
        del verdict["seconds"]
    return data["verdicts"]


def test_a_backend_that_is_not_to_be_had_is_refused_in_one_sentence(tmp_path):
    plan = plan_in(tmp_path, "right")
    belong = "--backend dask or ray and --scheduler belong together"
    assert belong in invoke("campaign", plan, "--backend", "dask")[1]
    assert belong in invoke("campaign", plan, "--scheduler", "tcp://127.0.0.1:1")[1]
    assert (
        "--backend is 'spark', expected one of 'loky', 'dask', 'ray'"
        in invoke("campaign", plan, "--backend", "spark")[1]
    )


@pytest.mark.parametrize(("backend", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_scheduler_that_is_none_is_refused_in_one_sentence(tmp_path, backend, module):
    there = find_spec(module) is not None
    plan = plan_in(tmp_path, "right")
    code, said = invoke("campaign", plan, "--backend", backend, "--scheduler", "tcp://nowhere")
    assert code == 2
    assert f"the backend {backend} is not to be had" in said
    assert there or "without the extra" in said


@pytest.mark.thorough
@pytest.mark.xdist_group("ray")
def test_a_cluster_of_ray_is_started_and_ended_with_the_block():
    pytest.importorskip("ray", reason="the extra ray is not installed")
    ended_by = signal.getsignal(signal.SIGTERM)
    with shared_among("ray", "local") as number:
        assert os.getpid() not in set(in_parallel([partial(os.getpid)] * 2, number))
    assert signal.getsignal(signal.SIGTERM) is ended_by


@pytest.mark.thorough
def test_the_work_is_done_elsewhere(cluster):
    with shared_among(*cluster) as number:
        assert number == 2
        found = list(in_parallel([partial(os.getpid)] * 8, number))
        assert len(set(found)) == 2
        assert os.getpid() not in found
    assert list(in_parallel([partial(os.getpid)] * 2, 1)) == [os.getpid()] * 2


@pytest.mark.thorough
def test_an_exact_law_is_the_same(cluster, tmp_path):
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    assert invoke("verify", *NAMES, "--json", here)[0] == 1
    assert invoke("verify", *NAMES, "--json", there, *named(cluster))[0] == 1
    assert told(there) == told(here)


@pytest.mark.thorough
def test_a_campaign_has_the_same_verdicts_and_counts(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(HERE)
    plan = {"tv": 0.1, "blocks": 6}
    here, there = (plan_in(tmp_path / name, "right", "biased", **plan) for name in ("here", "there"))
    assert run(there, *named(cluster)) == run(here, "--jobs", 2)
    assert blocks_in(tmp_path / "there") == blocks_in(tmp_path / "here")


@pytest.mark.thorough
def test_a_worker_that_dies_again_and_again_is_waited_for_no_longer_than_is_said(cluster):
    said = {"dask": "for 4 s nothing was finished", "ray": "a process that shared the work ended before it"}
    with shared_among(*cluster) as number, pytest.raises(WorkerDied, match=said[cluster[0]]):
        list(as_finished([partial(os._exit, 1)] * 2, number, 4))


@pytest.mark.thorough
def test_foreign_code_stays_here(cluster, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2] / "test_support" / "users")
    code, said = invoke("verify", "misbehaving:right", *named(cluster))
    assert code == 2
    assert "misbehaving:right is examined in processes of this machine, expected --backend loky" in said
