"""The lines about nodes whose cores or GPUs do not suffice, or differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rlnb_dask import hardware
from rlnb_dask.hardware import Needs
from rlnb_dask.node import NodeFacts

import rlnb
from rlnb.launchers import DetachedLauncher, Launcher, Resources
from rlnb.plugin import Command, GpuFacts, Manifest

H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"
FOUR = Needs(ranks=4, device="cuda", gpus_per_node=4, queue="slurm")


def gpus(count: int = 4, name: str = H100, driver: str = "580.65.06", **facts: Any) -> GpuFacts:
    return GpuFacts(names=(name,) * count, driver=driver, **{"driver_cuda": "13.0", "torch_cuda": "13.0", **facts})


def node(host: str, facts: GpuFacts | None = None, cores: int | None = 16) -> NodeFacts:
    return NodeFacts(host=host, cores=cores, gpus=facts)


def test_equal_nodes_with_a_gpu_and_a_core_for_each_rank_have_no_problem() -> None:
    assert hardware.problems([node("a", gpus()), node("b", gpus())], FOUR) == []
    assert hardware.problems([node("a", gpus(8)), node("b", gpus(4))], FOUR) == [], "the ranks use four of eight"


def test_a_node_with_fewer_cores_than_ranks_is_named() -> None:
    nodes = [node("a", gpus()), node("b", gpus(), cores=1), node("c", gpus(), cores=None)]
    line = "node 1 (b) has 1 core for 4 ranks. Use rlnb.slurm(cpus_per_node=16), or fewer ranks"
    assert hardware.problems(nodes, FOUR) == [line]


def test_ranks_on_the_cpu_share_cores_only_on_the_users_own_cluster() -> None:
    nodes = [node("a", cores=2)]
    line = "node 0 (a) has 2 cores for 4 ranks. Use rlnb.pbs(cpus_per_node=16), or fewer ranks"
    assert hardware.problems(nodes, Needs(ranks=4, device="cpu", queue="pbs")) == [line]
    assert hardware.problems(nodes, Needs(ranks=4, device="cpu")) == []
    with_gpus = [node("a", gpus(), cores=2)]
    line = "node 0 (a) has 2 cores for 4 ranks. Use larger workers, or fewer ranks"
    assert hardware.problems(with_gpus, Needs(ranks=4, device="cuda")) == [line]


def test_a_node_with_fewer_gpus_than_ranks_is_named_with_the_fix() -> None:
    nodes = [node("a", gpus()), node("b", gpus(2))]
    line = "node 1 (b): CUDA finds 2 GPUs for 4 ranks on device='cuda'. "
    visible = "Check CUDA_VISIBLE_DEVICES in the job and nvidia-smi on the node, or use fewer ranks"
    assert hardware.problems(nodes, FOUR) == [line + visible]
    assert hardware.problems(nodes, Needs(ranks=4, device="cuda")) == [line + visible], "a cluster of the user"
    few = Needs(ranks=4, device="cuda", queue="slurm")
    assert hardware.problems(nodes, few) == [line + "Use rlnb.slurm(gpus_per_node=4), or fewer ranks"]


def test_a_node_without_a_driver_is_named_once() -> None:
    nodes = [node("a", gpus(1)), node("b", GpuFacts(torch_cuda="13.0"))]
    line = "node 1 (b): CUDA finds no GPU for 1 rank on device='auto'. "
    line += "Select nodes with an NVIDIA driver; nvidia-smi shows it"
    assert hardware.problems(nodes, Needs(ranks=1, device="auto")) == [line], "the other node would train on its GPU"
    assert hardware.problems(nodes[1:], Needs(ranks=1, device="auto")) == [], "a training on the CPU"
    of_queue = Needs(ranks=1, device="auto", gpus_per_node=1, queue="slurm")
    assert hardware.problems(nodes[1:], of_queue) == [line.replace("node 1", "node 0")], "it has requested GPUs"


def test_a_device_with_a_number_needs_the_gpus_up_to_it() -> None:
    nodes = [node("a", gpus(2))]
    assert hardware.problems(nodes, Needs(ranks=1, device="cuda:1")) == []
    (line,) = hardware.problems(nodes, Needs(ranks=1, device="cuda:2"))
    assert line.startswith("node 0 (a): CUDA finds 2 GPUs for 1 rank on device='cuda:2'. ")


def test_the_node_with_other_gpus_than_most_is_named() -> None:
    nodes = [node("a", gpus()), node("b", gpus(name=A100)), node("c", gpus())]
    line = f"node 1 (b) has {A100}, but most nodes have {H100}. "
    line += 'Select nodes of one kind with the argument directives, such as directives=["--constraint=h100"]'
    assert hardware.problems(nodes, FOUR) == [line]


def test_the_node_with_a_driver_of_another_branch_is_named() -> None:
    nodes = [node("a", gpus()), node("b", gpus(driver="570.86.15")), node("c", gpus(driver="580.95.05"))]
    line = "node 1 (b) has an NVIDIA driver of branch 570, but most nodes have an NVIDIA driver of branch 580. "
    line += "Leave the node out, or install the same driver on all nodes"
    assert hardware.problems(nodes, FOUR) == [line]


def test_a_driver_that_is_too_old_for_torch_is_named() -> None:
    old = gpus(driver="550.54.14", driver_cuda="12.4")
    line = "node 0 (a): torch is built for CUDA 13.0, but the driver 550.54.14 supports only CUDA 12.4. "
    line += "Update the driver, or install a torch built for CUDA 12"
    assert hardware.problems([node("a", old)], FOUR) == [line]
    in_container = gpus(driver="550.54.14", driver_cuda="12.4", torch_cuda=None)
    assert hardware.problems([node("a", in_container)], FOUR) == [], "the torch of the container is unknown"
    same_major = gpus(driver="525.60.13", driver_cuda="12.0", torch_cuda="12.8")
    assert hardware.problems([node("a", same_major)], FOUR) == [], "CUDA is compatible within a major version"


def test_a_cpu_build_of_torch_on_a_node_with_gpus_is_named() -> None:
    line = "node 0 (a): torch is a CPU build, which uses no GPU. Install a CUDA build of torch"
    assert hardware.problems([node("a", gpus(torch_cuda=""))], FOUR) == [line]


@pytest.mark.parametrize(
    ("argv", "launcher", "expected"),
    [
        (("python", "-m", "t", "--nproc_per_node=4"), rlnb.slurm(gpus_per_node=4, walltime="01:00:00"), FOUR),
        (
            ("python", "-m", "rlnb.worker"),
            rlnb.slurm(walltime="01:00:00"),
            Needs(ranks=1, device="cuda", queue="slurm"),
        ),
        (("python", "--nproc_per_node=2"), rlnb.dask("tls://a:1"), Needs(ranks=2, device="cuda")),
    ],
)
def test_the_needs_of_a_job_are_in_its_command_and_its_launcher(
    argv: tuple[str, ...], launcher: Launcher, expected: Needs
) -> None:
    manifest = Manifest(
        run_id="r",
        created="",
        task=rlnb.Task(id="Echo"),
        library="echo",
        resources=Resources(device="cuda", nproc_per_node=expected.ranks),
        launcher=launcher.name,
        launcher_settings=launcher.settings,
    )
    job: Any = SimpleNamespace(manifest=manifest, command=Command(argv=argv))
    assert hardware.needs(job) == expected


def test_a_rank_that_stays_on_the_cpu_needs_a_core_and_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DetachedLauncher, "gpu_ranks", staticmethod(lambda manifest: 1))
    resources = Resources(device="cuda", nproc_per_node=3)
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="T"), library="roles", resources=resources)
    job: Any = SimpleNamespace(manifest=manifest, command=Command(argv=("python", "--nproc_per_node=3")))
    needs = hardware.needs(job)
    assert (needs.ranks, needs.gpus) == (3, 1)
    assert hardware.problems([node("a", gpus(1), cores=3)], needs) == []
    (line,) = hardware.problems([node("a", gpus(1), cores=2)], needs)
    assert "has 2 cores for 3 ranks" in line
    evaluation: Any = SimpleNamespace(manifest=manifest, command=Command(argv=("python",)))
    assert hardware.needs(evaluation).gpus == 1
