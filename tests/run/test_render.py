"""Job scripts and manifests for a cluster that starts the nodes itself. Local processes stand in for its pods."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import rlnb

IMAGE = "registry.example/isaaclab-rlnb:3.0"


def made(nodes: int = 2, **arguments: object) -> rlnb.Run:
    """Return a run that waits for pods."""
    launcher = rlnb.injected(nodes=nodes, nproc_per_node=arguments.pop("nproc_per_node", None))  # type: ignore[attr-defined]
    return rlnb.train("Echo", library="echo", max_iterations=5, launcher=launcher, **arguments)  # type: ignore[arg-type]


def test_a_run_for_pods_waits_for_them_and_starts_no_process(root: Path) -> None:
    run = made(2, nproc_per_node=8)
    assert run.state == "queued"
    assert (run.manifest.resources.nodes, run.manifest.resources.nproc_per_node) == (2, 8)
    long_ago = time.time() - 3600  # pods may start late
    os.utime(run.jobs[-1].folder.command, (long_ago, long_ago))
    os.utime(run.jobs[-1].folder.handle, (long_ago, long_ago))
    assert rlnb.get_run(run.id).state == "queued"
    assert not list(run.path.rglob("*.log"))


def test_the_launcher_sets_the_ranks_of_pods_unless_the_training_does(root: Path) -> None:
    launcher = rlnb.injected(nodes=1, nproc_per_node=3)  # type: ignore[attr-defined]
    for ranks, expected in ((None, 3), ("auto", 3), (2, 2)):
        run = rlnb.train("Echo", library="echo", launcher=launcher, nproc_per_node=ranks)  # type: ignore[arg-type]
        assert run.manifest.resources.nproc_per_node == expected
    with pytest.raises(rlnb.CheckError, match="nproc_per_node=0"):
        rlnb.train("Echo", library="echo", launcher=launcher, nproc_per_node=0)


def test_shell_has_one_command_for_all_nodes_and_comments_with_one_per_node(root: Path) -> None:
    run = made()
    text = rlnb.render(run, "shell", python="/env/bin/python")
    command = f"/env/bin/python -m rlnb.node --injected {run.path}"
    assert [line for line in text.splitlines() if not line.startswith("#")] == [command]
    for node in (0, 1):
        assert f"# MASTER_ADDR=FIRST_NODE MASTER_PORT=29500 WORLD_SIZE=2 RANK={node} {command}\n" in text


def test_a_slurm_script_sets_node_and_master(root: Path) -> None:
    text = rlnb.render(made(nproc_per_node=4), "sbatch", python="/my env/python")
    for line in ("#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=1", "#SBATCH --gpus-per-node=4"):
        assert f"{line}\n" in text
    assert "head -n 1)\n" in text
    assert "rlnb '/my env/python' -m rlnb.node --injected " in text
    assert "gpus" not in rlnb.render(made(device="cpu"), "sbatch")


def test_a_pytorchjob_has_a_master_and_workers_that_see_the_runs(root: Path) -> None:
    run = made(3, nproc_per_node=8)
    document = YAML(typ="safe").load(rlnb.render(run, "pytorchjob", image=IMAGE, claim="runs-pvc"))
    assert (document["apiVersion"], document["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    replicas = document["spec"]["pytorchReplicaSpecs"]
    assert {kind: replicas[kind]["replicas"] for kind in replicas} == {"Master": 1, "Worker": 2}
    for replica in replicas.values():
        assert replica["restartPolicy"] == "Never", "a restarted pod would not find its peers"
        (container,) = replica["template"]["spec"]["containers"]
        assert container["name"] == "pytorch"
        assert container["command"] == ["python", "-m", "rlnb.node", "--injected", str(run.path)]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
        assert {"name": "runs", "mountPath": str(root)} in container["volumeMounts"]
        assert replica["template"]["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "runs-pvc"}
    assert list(
        YAML(typ="safe").load(rlnb.render(made(1), "pytorchjob", image=IMAGE, claim="c"))["spec"]["pytorchReplicaSpecs"]
    ) == ["Master"]


def test_the_tasks_of_an_osmo_workflow_form_a_group_and_connect_to_its_first_task(root: Path) -> None:
    run = made(2, nproc_per_node=8)
    workflow = YAML(typ="safe").load(rlnb.render(run, "osmo", image=IMAGE))["workflow"]
    (group,) = workflow["groups"]
    assert [task["name"] for task in group["tasks"]] == ["node0", "node1"]
    assert [task.get("lead", False) for task in group["tasks"]] == [True, False]
    assert group["tasks"][1]["args"] == [
        "MASTER_ADDR={{host:node0}} MASTER_PORT=29500 WORLD_SIZE=2 RANK=1 "
        f"exec python -m rlnb.node --injected {run.path}"
    ]
    assert workflow["resources"]["default"]["gpu"] == 8


def test_a_run_that_cannot_be_rendered_is_refused(root: Path) -> None:
    run = made()
    with pytest.raises(rlnb.NotFoundError, match="Did you mean 'sbatch'"):
        rlnb.render(run, "sbtach")  # type: ignore[arg-type]
    with pytest.raises(rlnb.RlnbError, match="container image"):
        rlnb.render(run, "osmo")
    with pytest.raises(rlnb.RlnbError, match="persistent volume claim"):
        rlnb.render(run, "pytorchjob", image=IMAGE)
    here = rlnb.train("Echo", library="echo", max_iterations=1).wait(30)
    with pytest.raises(rlnb.RlnbError, match=r"launcher=rlnb\.injected"):
        rlnb.render(here)
    with pytest.raises(rlnb.CheckError, match="nodes=0"):
        made(0)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
def test_pods_that_know_their_rank_train_a_run(root: Path) -> None:
    run = made(2)
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "WORLD_SIZE": "2"}
    pods = [
        subprocess.Popen(
            [sys.executable, "-m", "rlnb.node", "--injected", str(run.path)],
            env={**os.environ, **variables, "RANK": str(node)},
        )
        for node in (0, 1)
    ]
    assert run.wait(60).state == "completed"
    assert [pod.wait(20) for pod in pods] == [0, 0]
    assert len(run.jobs[-1].folder.hosts()) == 2


ONE_POD = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "WORLD_SIZE": "1", "RANK": "0"}


def test_a_recreated_pod_does_not_train_again(root: Path) -> None:
    run = made(1)
    pod = [sys.executable, "-m", "rlnb.node", "--injected", str(run.path)]
    assert subprocess.run(pod, env={**os.environ, **ONE_POD}, check=False).returncode == 0
    logged = run.metrics["reward"].values
    again = subprocess.run(pod, env={**os.environ, **ONE_POD}, capture_output=True, text=True, check=False)
    assert (again.returncode, run.state) == (1, "completed")
    assert "cannot be started twice" in again.stderr
    assert rlnb.Run(run.path).metrics["reward"].values == logged


def test_a_job_starts_although_nfs_reports_its_new_link_as_existing(root: Path) -> None:
    run = made(1)
    agent = """
import os, sys
from rlnb.node.__main__ import main
link = os.link
def forgetful(*names):
    link(*names)
    raise FileExistsError
os.link = forgetful
sys.exit(main(sys.argv[1:]))
"""
    pod = [sys.executable, "-c", agent, "--injected", str(run.path)]
    assert subprocess.run(pod, env={**os.environ, **ONE_POD}, check=False).returncode == 0
    assert run.state == "completed"


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
@pytest.mark.parametrize(("device", "state"), [("auto", "queued"), ("cpu", "completed")])
def test_a_pod_with_too_few_gpus_starts_only_ranks_on_the_cpu(root: Path, device: str, state: str) -> None:
    run = made(1, nproc_per_node=2, device=device)
    pod = [sys.executable, "-m", "rlnb.node", "--injected", str(run.path)]
    subprocess.run(pod, env={**os.environ, **ONE_POD, "NPROC_PER_NODE": "1"}, check=False)
    assert run.state == state


def test_a_pod_that_starts_after_a_cancel_does_not_train(root: Path) -> None:
    run = made(1)
    run.cancel()
    subprocess.run(
        [sys.executable, "-m", "rlnb.node", "--injected", str(run.path)],
        env={**os.environ, **ONE_POD},
        check=False,
    )
    assert run.state == "cancelled"
    assert not list(run.path.rglob("*tfevents*"))
