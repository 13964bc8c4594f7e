"""The checks of a node, and the agents it runs."""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from rlnb_dask import node
from rlnb_dask.address import free_port

import rlnb


def test_the_packages_of_the_ranks_own_interpreter_are_checked(tmp_path: Path) -> None:
    nowhere = node.look(str(tmp_path), "node0", (), None, "/nowhere/python").problem
    assert nowhere.startswith("the interpreter /nowhere/python does not list its packages: ")
    broken = node.look(str(tmp_path), "node0", (), None, "/bin/sh -c 'echo no module >&2; exit 1'").problem
    assert broken.endswith("does not list its packages: no module")
    other = node.look(str(tmp_path), "node0", ("rlnb", "nothing"), None, f"{sys.executable} -P")
    assert (other.versions, other.problem) == (
        {"python": platform.python_version(), "rlnb": rlnb.__version__, "nothing": "none"},
        "",
    )
    assert other.versions == node.look(str(tmp_path), "node0", ("rlnb", "nothing"), None).versions


def test_a_node_without_its_assets_has_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert node.look(str(tmp_path), "node0", (), "/nowhere").problem == "the asset root /nowhere does not exist"
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", "/of/the/node")
    assert "/of/the/node does not exist" in node.look(str(tmp_path), "node0", (), None).problem
    assert node.look(str(tmp_path), "node0", (), str(tmp_path)).problem == ""


def test_the_cores_of_a_node_are_those_that_its_job_may_use(tmp_path: Path) -> None:
    code = "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    code += "from rlnb_dask import node; print(node.look(sys.argv[1], 'node0', (), None).cores)"
    process = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["1"]


def test_the_look_at_a_node_has_its_gpus_only_if_the_job_may_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.11.0'\ncuda: Optional[str] = '13.0'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert node.look(str(tmp_path), "node0", (), None).gpus is None
    facts = node.look(str(tmp_path), "node0", (), None, on_gpus=True).gpus
    assert facts is not None
    assert (facts.names, facts.torch_cuda) == ((), "13.0")
    contained = node.look(str(tmp_path), "node0", (), None, on_gpus=True, contained=True).gpus
    assert contained is not None
    assert contained.torch_cuda is None, "the container has another torch"


def test_a_library_that_crashes_is_a_problem_of_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    facts = node.look(str(tmp_path), "node0", (), None, on_gpus=True)
    assert facts.problem == "the GPUs cannot be listed: exit status 1. Check the driver with nvidia-smi"


def test_a_nannys_variables_do_not_reach_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "5")
    preset = {"OMP_NUM_THREADS": 1, "MALLOC_TRIM_THRESHOLD_": 65536}
    with dask.config.set({"distributed.nanny.pre-spawn-environ": preset}):
        assert "OMP_NUM_THREADS" not in node.environment(nanny=True)
        assert node.environment(nanny=True)["MALLOC_TRIM_THRESHOLD_"] == "5", "the user's own value"
        assert node.environment(nanny=False)["OMP_NUM_THREADS"] == "1"


def test_a_worker_that_closes_ends_its_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lifeline = node.Lifeline()
    worker: Any = SimpleNamespace(nanny=None, plugins={node.Lifeline.name: lifeline})
    monkeypatch.setattr(node, "get_worker", lambda: worker)
    statuses: list[int] = []
    argv = [sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(7)"]
    thread = threading.Thread(target=lambda: statuses.append(node.run_agent(argv, str(tmp_path / "log"), None)))
    thread.start()
    while not node.busy(worker):
        time.sleep(0.01)
    lifeline.teardown(worker)
    thread.join(5)
    assert statuses == [7]
    assert not node.busy(worker)


def test_an_agent_does_not_write_where_a_link_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker: Any = SimpleNamespace(nanny=None, plugins={node.Lifeline.name: node.Lifeline()})
    monkeypatch.setattr(node, "get_worker", lambda: worker)
    (tmp_path / "log").symlink_to(tmp_path / "new")
    with pytest.raises(OSError, match="symbolic links"):
        node.run_agent([sys.executable, "-c", "print()"], str(tmp_path / "log"), None)
    assert not (tmp_path / "new").exists()


def test_a_worker_without_a_lifeline_is_not_busy() -> None:
    worker: Any = SimpleNamespace(plugins={})
    assert not node.busy(worker)


def test_a_missing_file_of_another_node_is_reported_after_a_wait(tmp_path: Path) -> None:
    (tmp_path / "node0").touch()
    assert node.sees(str(tmp_path), ["node0", "node1"], within_s=0.3) == ["node1"]


def test_a_port_that_listens_is_reached_and_another_is_not() -> None:
    assert node.reaches("127.0.0.1", node.listen(for_s=5.0)) == ""
    assert "refused" in node.reaches("127.0.0.1", free_port()).lower()
