"""A job in a pod or in a user's session does not take the variables around it for its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.machine import threads
from rlnb.node.child import PLACE, SESSION, environment
from rlnb.protocol import requests
from rlnb.simulation.process import SimulatorProcess

pytestmark = pytest.mark.usefixtures("pod")
POD = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "MASTER_ADDR": "dlc-master-0", "MASTER_PORT": "23456"}
"""Variables of the fourth pod of a PyTorchJob."""
ELASTIC = {"PET_RDZV_ENDPOINT": "job-worker-0:29400", "PET_RDZV_BACKEND": "c10d", "PET_NNODES": "2:4"}
"""Those of an elastic one."""
SERVES = """
import sys
from rlnb.configs.card import AssetRoot
from rlnb.worker import __main__ as worker
from rlnb.worker.requests import serve

serve._load = AssetRoot
sys.exit(worker.main(sys.argv[4:]))
"""
"""The real worker without Isaac Lab."""


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**POD, **ELASTIC, "LIVESTREAM": "2", "XR": "1", "HEADLESS": "0", "NCCL_DEBUG": "INFO"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def living(tmp_path: Path) -> Iterator[SimulatorProcess]:
    """A warm simulator without Isaac Lab."""
    (tmp_path / "worker.py").write_text(SERVES)
    process = SimulatorProcess(f"{sys.executable} {tmp_path / 'worker.py'}", None, tmp_path / "log" / "worker.log")
    yield process
    process.close()


def test_a_worker_gets_no_place_and_no_session_but_the_variables_of_its_command() -> None:
    variables = environment(("python", "-m", "rlnb.worker", "train"), {"OMP_NUM_THREADS": "2", "RANK": "0"})
    assert (PLACE | SESSION) & variables.keys() == {"RANK"}
    assert (variables["RANK"], variables["OMP_NUM_THREADS"], variables["NCCL_DEBUG"]) == ("0", "2", "INFO")
    assert not ELASTIC.keys() & variables.keys()
    assert environment(("python", "train.py"), {"PET_NNODES": "1"})["PET_NNODES"] == "1", "of the command"


@pytest.mark.parametrize("argv", [("python", "-P", "-m", "rlnb.worker", "train"), ("python", "train.py")])
def test_the_folder_for_temporary_files_is_the_users_own(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert environment(argv, {})["TMPDIR"] == str(tmp_path / f"rlnb-{os.getuid()}-tmp")


def test_only_rlnbs_own_modules_do_not_search_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, script = ("python", "-P", "-m", "rlnb.worker", "train"), ("python", "train.py")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert environment(worker, {})["PYTHONSAFEPATH"] == "rlnb"
    assert "PYTHONSAFEPATH" not in environment(script, {}), "a script needs its own folder"
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    assert environment(worker, {})["PYTHONSAFEPATH"] == environment(script, {})["PYTHONSAFEPATH"] == "1"


def test_each_process_gets_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    worker = ("-m", "rlnb.worker", "train", "/run", "/job")
    ranks = ("python", "-m", "torch.distributed.run", "--nproc_per_node=3", "--nnodes=1", *worker)
    one = ("python", *worker)
    monkeypatch.setattr("rlnb.machine.cores.cgroup_cpus", lambda: None)
    assert environment(ranks, {})["OMP_NUM_THREADS"] == "4", "torchrun would give each rank one"
    assert environment(one, {}, at_once=2)["OMP_NUM_THREADS"] == "6"
    assert environment(ranks, {"OMP_NUM_THREADS": "5"})["OMP_NUM_THREADS"] == "5", "the run's own number"
    assert "OMP_NUM_THREADS" not in environment(("python", "train.py"), {}), "OpenMP takes all cores by itself"


def test_threads_of_a_script_soon_sleep_and_a_worker_sees_to_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in threads.BY_USER:
        monkeypatch.delenv(name, raising=False)
    assert environment(("python", "train.py"), {}).items() >= threads.SHORT.items()
    assert not threads.SHORT.keys() & environment(("python", "-m", "rlnb.worker", "train", "/r", "/j"), {}).keys()


def test_a_script_keeps_the_session_that_it_may_read_itself() -> None:
    variables = environment(("python", "train.py"), {})
    assert (PLACE | SESSION) & variables.keys() == SESSION


def test_a_training_run_of_one_process_in_a_pod_trains_alone(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait(60)
    assert run.started is not None
    assert run.started.world_size == 1


def test_the_warm_simulator_in_a_pod_is_alone(living: SimulatorProcess) -> None:
    living.request(requests.Ping())
    variables = psutil.Process(living.pid).environ()
    assert (PLACE | SESSION) & variables.keys() == set()
    assert variables["NCCL_DEBUG"] == "INFO"
