"""Trainings on the workers of a Dask cluster that is there."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gangs import echo, processes, rank, wait_until

import rlnb

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rlnb_dask") is None, reason="rlnb-dask is not installed here")
PLAIN = "tcp://192.0.2.1:8786"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers, which only who has their keys can talk to."""
    from distributed import LocalCluster, Security

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, security=Security.temporary()
    ) as cluster:
        yield cluster


def test_a_gang_trains_on_the_workers_of_a_cluster(cluster: Any, clean: Path) -> None:
    run = echo(rlnb.dask(cluster, nodes=2), 10)
    assert run.wait(90).state == "completed"
    assert run.manifest.resources.world_size == 2
    assert len(run.jobs[-1].folder.hosts()) == 2
    wait_until(lambda: not processes(run), 20)


def test_keys_in_memory_are_in_no_record_and_readable_by_nobody_else(cluster: Any, clean: Path) -> None:
    run = echo(rlnb.dask(cluster), 3)
    keys = run.jobs[-1].folder.path / ".tls"
    assert keys.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in keys.iterdir())
    assert "PRIVATE KEY" not in (run.path / "manifest.json").read_text()
    run.wait(90)
    wait_until(lambda: not processes(run), 20)
    assert not keys.exists(), "they are gone with the job"


def test_cancel_leaves_the_workers_free(cluster: Any, clean: Path) -> None:
    run = echo(rlnb.dask(cluster, nodes=2))
    wait_until(lambda: run.state == "running", 60)
    assert "MALLOC_TRIM_THRESHOLD_" not in rank(run, 0).environ(), "which Dask sets for its own work"
    run.cancel()
    wait_until(lambda: not processes(run), 30)
    assert run.state == "cancelled"
    assert echo(rlnb.dask(cluster, nodes=2), 3).wait(90).state == "completed"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("", "is not the address of a Dask scheduler"),
        ("inproc://1/2", "threads of this kernel"),
        (PLAIN, "plain TCP: whoever reaches it can run anything there"),
        ("tcp://127.0.0.1:1", "does not answer"),
    ],
)
def test_a_cluster_that_will_not_do_is_told(clean: Path, address: str, expected: str) -> None:
    with pytest.raises(rlnb.CheckError, match=expected):
        echo(rlnb.dask(address))
    assert not list(clean.glob("runs/*"))


def test_too_few_workers_are_told(cluster: Any, clean: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="nodes=3, but the cluster has 2 workers"):
        echo(rlnb.dask(cluster, nodes=3))
