"""Trainings on the workers of an existing Dask cluster."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from runs_on_nodes import LEAVE_S, echo, processes, rank, wait_until

import rlnb
from rlnb.launchers import DetachedJob

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rlnb_dask") is None, reason="rlnb-dask is not installed here")
PLAIN = "tcp://192.0.2.1:8786"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Provide a cluster of two workers that accept only connections with its TLS keys."""
    from distributed import LocalCluster, Security

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, security=Security.temporary()
    ) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_training_runs_on_the_workers_of_a_cluster(cluster: Any, clean: Path) -> None:
    run = echo(rlnb.dask(cluster, nodes=2), 10)
    assert run.wait(90).state == "completed"
    assert run.manifest.resources.world_size == 2
    assert len(run.jobs[-1].folder.hosts()) == 2
    wait_until(lambda: not processes(run), LEAVE_S)


@pytest.mark.slow
def test_keys_in_memory_are_not_recorded_and_only_their_owner_can_read_them(cluster: Any, clean: Path) -> None:
    run = echo(rlnb.dask(cluster), 3)
    keys = run.jobs[-1].folder.path / ".tls"
    assert keys.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in keys.iterdir())
    assert "PRIVATE KEY" not in (run.path / "manifest.json").read_text()
    run.wait(90)
    wait_until(lambda: not processes(run), LEAVE_S)
    assert not keys.exists(), "the keys are deleted when the job ends"


@pytest.mark.slow
def test_cancel_leaves_the_workers_free(cluster: Any, clean: Path) -> None:
    run = echo(rlnb.dask(cluster, nodes=2))
    wait_until(lambda: run.state == "running", 60)
    assert "MALLOC_TRIM_THRESHOLD_" not in rank(run, 0).environ(), "Dask sets this variable for its own workers"
    run.cancel()
    wait_until(lambda: not processes(run), 30)
    assert run.state == "cancelled"
    assert echo(rlnb.dask(cluster, nodes=2), 3).wait(90).state == "completed"


@pytest.mark.slow
def test_two_runs_share_a_cluster_and_a_third_waits_for_a_worker(cluster: Any, clean: Path) -> None:
    first, second = (echo(rlnb.dask(cluster)) for _ in range(2))
    wait_until(lambda: first.state == second.state == "running", 90)
    third = echo(rlnb.dask(cluster), 3)
    host = third.jobs[-1].folder.path / "host.log"
    wait_until(lambda: "2 more are busy" in host.read_text(), 60)
    assert (first.state, second.state, third.state) == ("running", "running", "queued")
    second.cancel()
    assert third.wait(90).state == "completed"
    assert first.state == "running", "the end of another run must not end this one"
    first.cancel()
    wait_until(lambda: not processes(first), 30)


@pytest.mark.slow
def test_two_runs_that_start_at_the_same_time_take_different_workers(cluster: Any, clean: Path) -> None:
    from distributed import Client, Lock

    with Client(cluster):
        lock = Lock("rlnb-nodes")
        lock.acquire()
        runs = [echo(rlnb.dask(cluster)) for _ in range(2)]
        hosts = [run.jobs[-1].folder.path / "host.log" for run in runs]
        wait_until(lambda: all("another run is choosing its nodes" in host.read_text() for host in hosts), 60)
        lock.release()
    wait_until(lambda: all(run.state == "running" for run in runs), 60)
    agents = [process for run in runs for process in processes(run) if "rlnb.node" in process.cmdline()]
    assert len({agent.ppid() for agent in agents}) == len(agents) == 2, "each run has its own worker"
    for run in runs:
        run.cancel()
        wait_until(lambda run=run: not processes(run), 30)  # type: ignore[misc]


@pytest.mark.slow
def test_a_worker_stays_busy_while_an_agent_whose_host_died_trains_on_it(cluster: Any, clean: Path) -> None:
    orphan = echo(rlnb.dask(cluster))
    wait_until(lambda: orphan.state == "running", 60)
    psutil.Process(orphan.jobs[-1].handle["pid"]).kill()
    runs = [echo(rlnb.dask(cluster), 3) for _ in range(2)]
    assert [run.wait(90).state for run in runs] == ["completed"] * 2
    agents = [process for process in processes(orphan) if "rlnb.node" in process.cmdline()]
    assert len(agents) == 1, "the agent whose host died still trains, so neither run waited for its worker"
    orphan.cancel()
    wait_until(lambda: not processes(orphan), 30)


@pytest.mark.slow
def test_a_run_whose_keys_were_in_memory_cannot_be_resumed_without_them(cluster: Any, clean: Path) -> None:
    run = echo(rlnb.dask(cluster), 3)
    run.wait(90)
    with pytest.raises(rlnb.RlnbError, match="needs TLS keys, and none are given"):
        run.resume(max_iterations=6)
    assert len(run.jobs) == 1
    with pytest.raises(rlnb.CheckError, match="in memory only, and end with the job"):
        echo(rlnb.dask(cluster, max_restarts=1))
    with pytest.raises(rlnb.CheckError, match="needs TLS keys, and none are given"):
        echo(rlnb.dask(cluster.scheduler_address))


def test_a_node_that_hangs_or_is_lost_during_the_check_is_named(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import Client, LocalCluster
    from distributed.scheduler import KilledWorker
    from rlnb_dask import node, preflight

    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    job, looked = DetachedJob(run.jobs[0].folder.path), node.look
    monkeypatch.setattr(preflight, "ANSWER_S", 8.0)
    beats: list[None] = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as inside,
        Client(inside) as client,
    ):
        workers = list(client.scheduler_info(n_workers=-1)["workers"])

        def hang(shared: str, name: str, *others: Any, **more: Any) -> dict[str, Any]:
            time.sleep(12.0 if name == "node1" else 0.0)
            return looked(shared, name, *others, **more)

        def fail(shared: str, name: str, *others: Any, **more: Any) -> dict[str, Any]:
            raise OSError("Stale file handle")

        def go(shared: str, name: str, *others: Any, **more: Any) -> dict[str, Any]:
            raise KilledWorker(name, SimpleNamespace(address=""), 0)  # type: ignore[arg-type]

        monkeypatch.setattr(node, "look", hang)
        (wrong,) = preflight.problems(client, workers, job, lambda: beats.append(None))
        assert wrong.startswith("node 1 (")
        assert "has not answered for 8 s" in wrong
        assert beats, "the host must keep its heartbeat and notice a cancellation"
        monkeypatch.setattr(preflight, "ANSWER_S", 30.0)
        monkeypatch.setattr(node, "look", fail)
        first, second = preflight.problems(client, workers, job, lambda: None)
        assert first.startswith("node 0 (")
        assert second.endswith("cannot be checked: OSError: Stale file handle"), "a retry would not help"
        monkeypatch.setattr(node, "look", go)
        with pytest.raises(preflight.NodeGone, match=r"node 0 \(.*\) was lost during the check"):
            preflight.problems(client, workers, job, lambda: None)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("gateway://host:8786/abc", "the transport gateway is not supported"),
        ("", "is not the address of a Dask scheduler"),
        ("inproc://1/2", "threads of this kernel"),
        (PLAIN, "plain TCP: anyone who can connect to it can run code there"),
        ("tcp://127.0.0.1:1", "does not answer"),
    ],
)
def test_an_unusable_cluster_is_refused(clean: Path, address: str, expected: str) -> None:
    with pytest.raises(rlnb.CheckError, match=expected):
        echo(rlnb.dask(address))
    assert not list(clean.glob("runs/*"))


@pytest.mark.slow
def test_too_few_workers_are_refused(cluster: Any, clean: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="nodes=3, but the cluster has 2 workers"):
        echo(rlnb.dask(cluster, nodes=3))
