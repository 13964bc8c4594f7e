"""Pods of a run: processes with host names of their own, which are killed and started again."""

from __future__ import annotations

import html
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.node.peers import Member
from rlnb.node.supervisor import Agent
from rlnb.pods import member
from rlnb.pods.member import check_master, member_of, node_of
from rlnb.pods.pod import Pod, newest_training, start
from rlnb.records.layout import JobDir, RunDir
from rlnb.spec import Command, Manifest, Result, Task
from rlnb.storage import files

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed here")
CAN_NAME = os.geteuid() == 0 and shutil.which("unshare") is not None
"""Whether a process can have a host name of its own."""
LOGGED = "import sys; from rlnb.pods.__main__ import main; sys.exit(main(sys.argv[1:]))"


def made(nodes: int = 2, *, max_iterations: int = 5, iteration_s: float = 0.0, **arguments: object) -> rlnb.Run:
    """Return a run that waits for pods."""
    settings = {name: arguments.pop(name) for name in ("nproc_per_node", "max_restarts") if name in arguments}
    launcher = rlnb.injected(nodes=nodes, **settings)  # type: ignore[attr-defined,arg-type]
    return rlnb.train(
        "Echo",
        library="echo",
        max_iterations=max_iterations,
        agent={"iteration_s": iteration_s},
        launcher=launcher,
        **arguments,  # type: ignore[arg-type]
    )


class Pods:
    """The pods of one run on this machine."""

    def __init__(self, run: rlnb.Run, nodes: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        self._run = run
        self._env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(nodes)}
        self._pods: list[subprocess.Popen[str]] = []

    def start(self, node: int, code: str = LOGGED, **variables: str) -> subprocess.Popen[str]:
        """Start the pod of a node, with the host name ``pod-<node>`` if possible."""
        argv = [sys.executable, "-c", code, str(self._run.path)]
        if CAN_NAME:
            argv = ["unshare", "--uts", "sh", "-c", f'hostname pod-{node}; exec "$@"', "sh", *argv]
        env = {**os.environ, **self._env, "RANK": str(node), **variables}
        env = {name: value for name, value in env.items() if value}
        pod = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)
        self._pods.append(pod)
        return pod

    def end(self, node: int, **variables: str) -> tuple[int, str]:
        """Run the pod of a node to its end; return its exit status and error output."""
        pod = self.start(node, **variables)
        _, error = pod.communicate(timeout=120)
        return pod.returncode, error

    def kill(self) -> None:
        for process in self._pods:
            kill(process)


def kill(pod: subprocess.Popen[str]) -> None:
    """End a pod as a cluster does that takes the machine away: all its processes at once."""
    if pod.poll() is None:
        for process in [psutil.Process(pod.pid), *psutil.Process(pod.pid).children(recursive=True)]:
            process.kill()
    pod.wait()


def until(condition: Callable[[], object], limit_s: float = 90.0) -> float:
    """Wait for a condition; return the seconds that it took."""
    start_s = time.monotonic()
    while not condition():
        assert time.monotonic() - start_s < limit_s, "the condition was never met"
        time.sleep(0.05)
    return time.monotonic() - start_s


@pytest.fixture
def pods_of(root: Path) -> Iterator[Callable[[rlnb.Run, int], Pods]]:
    """Returns a function that makes the pods of a run; all of them are ended after the test."""
    everyone: list[Pods] = []

    def make(run: rlnb.Run, nodes: int) -> Pods:
        everyone.append(Pods(run, nodes))
        return everyone[-1]

    yield make
    for pods in everyone:
        pods.kill()


Make = Callable[[rlnb.Run, int], Pods]


@NEEDS_TORCH
def test_pods_that_know_their_rank_train_a_run(pods_of: Make) -> None:
    run = made(2)
    pods = pods_of(run, 2)
    both = [pods.start(node) for node in (0, 1)]
    assert run.wait(150).state == "completed"
    assert [pod.wait(20) for pod in both] == [0, 0]
    assert run.jobs[-1].folder.hosts() == (("pod-0", "pod-1") if CAN_NAME else (socket.gethostname(),) * 2)


@NEEDS_TORCH
@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_pod_that_is_killed_and_started_again_goes_on_with_the_others(pods_of: Make, killed: int) -> None:
    run = made(2, max_iterations=1000, iteration_s=0.1)
    pods = pods_of(run, 2)
    both = [pods.start(0), pods.start(1)]
    until(lambda: run.progress[0] >= 12)
    kill(both[killed])
    killed_s = time.monotonic()
    time.sleep(2.0)  # a cluster needs a moment
    both[killed] = pods.start(killed)
    until(lambda: len(run.jobs) == 2)
    created_s = time.monotonic() - killed_s
    assert run.jobs[0].result is not None
    assert f"node {killed} (" in run.jobs[0].result.error
    assert run.state in ("queued", "starting", "running")
    until(lambda: run.jobs[1].started is not None and run.state == "running")
    again_s = time.monotonic() - killed_s
    print(f"a new job after {created_s:.1f} s, training again after {again_s:.1f} s")
    assert again_s < 60
    until(lambda: run.progress[0] > run.jobs[1].started.first_iteration + 5)  # type: ignore[union-attr]
    run.cancel()
    assert [pod.wait(20) for pod in both] == [0, 0]
    started = run.jobs[1].started
    assert started is not None
    assert started.first_iteration >= 10, "it goes on from the last checkpoint"
    steps = [step for step, _, _ in run.metrics["reward"].points]
    assert steps == [*range(len(steps))], "the curves of both jobs are one"


def test_a_single_pod_goes_on_by_itself_until_its_restarts_are_used_up(
    pods_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(1, max_iterations=1000, iteration_s=0.1, max_restarts=1)
    pods = pods_of(run, 1)
    soon = LOGGED.replace("import sys;", "import sys; from rlnb.pods import pod; pod.DEAD_S = 2.0;")
    for restart in (0, 1):
        pod = pods.start(0, soon)
        until(lambda count=restart + 1: len(run.jobs) == count and run.state == "running")  # type: ignore[misc]
        kill(pod)
    assert pods.start(0, soon).wait(20) == 1
    assert len(run.jobs) == 2
    assert [job.result.error for job in run.jobs if job.result] == [
        f"node 0 ({'pod-0' if CAN_NAME else socket.gethostname()}) was killed, and its cluster has started it again"
    ] * 2


def test_a_second_pod_of_the_same_rank_is_refused_while_the_first_lives(pods_of: Make) -> None:
    run = made(1, max_iterations=1000, iteration_s=0.1)
    pods = pods_of(run, 1)
    pods.start(0)
    until(lambda: run.state == "running")
    code, error = pods.end(0)
    assert code == 1
    assert "runs there as node 0, and cannot be started twice. Give each pod a RANK of its own." in error
    assert run.state == "running"
    run.cancel()
    until(lambda: run.state == "cancelled")


@NEEDS_TORCH
@pytest.mark.slow
def test_a_second_pod_of_the_first_rank_does_not_keep_the_others_from_going_on(pods_of: Make) -> None:
    run = made(2, max_iterations=1000, iteration_s=0.1)
    pods = pods_of(run, 2)
    both = [pods.start(0), pods.start(1)]
    until(lambda: run.progress[0] >= 7)
    assert pods.end(0)[0] == 1
    kill(both[1])
    both[1] = pods.start(1)
    until(lambda: len(run.jobs) == 2 and run.state == "running")
    run.cancel()
    assert [pod.wait(20) for pod in both] == [0, 0]


@pytest.mark.parametrize("variables", [{"RANK": "0"}, {"RANK": "0", "WORLD_SIZE": "4"}])
def test_a_pod_with_the_rank_of_a_living_one_speaks_for_itself_alone(root: Path, variables: dict[str, str]) -> None:
    run = made(2)
    job = run.jobs[0].folder
    files.write_once(job.running(0), {"host": "pod-0"})
    beat = ["sh", "-c", 'while true; do touch "$1"; sleep 0.1; done', "sh", str(job.alive(0))]
    master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "2"}
    with subprocess.Popen(beat) as living:
        assert start(run.path, {**master, **variables}) == 1
        living.kill()
    assert not files.there(job.refusal("node0")), "the other pods would read it as the end of the run"
    assert len(run.refusals) == 1


def test_a_pod_that_the_cluster_ends_in_order_goes_on_at_its_next_start(pods_of: Make) -> None:
    run = made(1, max_iterations=1000, iteration_s=0.1)
    pods = pods_of(run, 1)
    pod = pods.start(0)
    until(lambda: run.progress[0] > 2)
    pod.terminate()
    assert pod.wait(20) == 1
    assert run.jobs[0].result is not None
    assert run.jobs[0].result.interrupted
    assert run.jobs[0].result.checkpoint is not None, "it was saved first"
    pods.start(0)
    until(lambda: len(run.jobs) == 2 and run.state == "running")
    run.cancel()
    until(lambda: run.state == "cancelled")


def test_a_pod_of_a_run_that_has_ended_does_not_train_again(pods_of: Make) -> None:
    run = made(1)
    pods = pods_of(run, 1)
    assert pods.end(0)[0] == 0
    logged = run.metrics["reward"].values
    code, error = pods.end(0)
    assert (code, run.state) == (0, "completed"), "so that the cluster does not start it again and again"
    assert "has ended (completed) and cannot be started twice." in error
    assert rlnb.Run(run.path).metrics["reward"].values == logged


def test_a_pod_that_starts_after_a_cancel_does_not_train(pods_of: Make) -> None:
    run = made(1)
    run.cancel()
    assert pods_of(run, 1).end(0)[0] == 0
    assert run.state == "cancelled"
    assert not list(run.path.rglob("*tfevents*"))


def test_what_the_first_pod_refuses_is_the_result_within_seconds(pods_of: Make) -> None:
    run = made(2)
    code, error = pods_of(run, 4).end(0)
    end_s = time.monotonic()
    text = "RANK=0 of WORLD_SIZE=4 pods does not fit"
    with pytest.raises(rlnb.RunError, match=text):
        run.wait(5)
    assert time.monotonic() - end_s < 5
    assert (code, error.count("\n")) == (1, 1), "one line, no traceback"
    assert text in error


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"MASTER_PORT": "", "RANK": "1"}, r"node 1 \(.*\) does not start: MASTER_PORT is not set"),
        ({"RANK": ""}, r"^(?!node).* does not start: RANK is not set"),
    ],
)
def test_what_another_pod_refuses_is_shown_by_the_run(pods_of: Make, variables: dict[str, str], words: str) -> None:
    run = made(2)
    assert pods_of(run, 2).end(1, **variables)[0] == 1
    assert run.state == "queued", "the other pod may be right, and this one may be started again"
    (refusal,) = run.refusals
    assert re.search(words, refusal)
    assert html.escape(refusal) in run._repr_html_()


@pytest.mark.parametrize(("device", "state"), [("auto", "failed"), ("cpu", "completed")])
@NEEDS_TORCH
def test_a_pod_with_too_few_gpus_starts_only_ranks_on_the_cpu(pods_of: Make, device: str, state: str) -> None:
    run = made(1, nproc_per_node=2, device=device)
    pods_of(run, 1).end(0, NPROC_PER_NODE="1")
    assert run.state == state


def test_a_job_starts_although_nfs_reports_its_new_link_as_existing(pods_of: Make) -> None:
    run = made(1)
    forgetful = """
import os, sys
from rlnb.pods.__main__ import main
link = os.link
def forgetful(*names, **folders):
    link(*names, **folders)
    raise FileExistsError
os.link = forgetful
sys.exit(main(sys.argv[1:]))
"""
    assert pods_of(run, 1).start(0, forgetful).wait(30) == 0
    assert run.state == "completed"


def test_a_signal_ends_the_pod_also_while_a_plugin_is_at_work(pods_of: Make, tmp_path: Path) -> None:
    run = made(1)
    job = run.jobs[0].folder
    files.write_once(job.running(0), {"host": "pod-0"})
    files.write_once(job.result, Result(outcome="failed", ended=files.now(), values={"interrupted": True}))
    info = tmp_path / "site" / "rlnb_slow-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlnb-slow\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rlnb]\nslow = rlnb_slow\n")
    (info.parent / "rlnb_slow.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    path = os.pathsep.join([str(info.parent), os.environ.get("PYTHONPATH", "")])
    assert pods_of(run, 1).end(0, PYTHONPATH=path) == (1, "")
    assert len(run.jobs) == 1


@pytest.fixture
def handlers() -> Iterator[None]:
    """Restores the handlers of the signals that an agent handles."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_signal_between_two_trainings_ends_the_pod(root: Path, handlers: None) -> None:
    run = made(1)
    job = run.jobs[0].folder
    pod = Pod(run.record.manifest, job)
    pod._agent = Agent(job, Command(argv=("true",)), revocable=True)  # that of the training before
    os.kill(os.getpid(), signal.SIGTERM)
    assert pod.run(Member()) == 1, "so that the cluster starts it again"
    assert not files.there(job.running())


def test_a_pod_that_does_not_find_the_first_one_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "RESOLVE_S", 0.0)
    run = made(2)
    env = {"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "RANK": "1"}
    assert start(run.path, env) == 1
    (refusal,) = run.refusals
    assert "MASTER_ADDR=nowhere.invalid does not resolve on node 1" in refusal
    assert not files.there(run.jobs[0].folder.running(1))


def test_a_pod_waits_on_although_its_heartbeat_cannot_be_written(tmp_path: Path) -> None:
    manifest = Manifest(run_id="r", created="", task=Task(id="T"), library="echo")
    Pod(manifest, JobDir(tmp_path / "away"))._keep_heartbeat(0)


def test_the_newest_training_is_the_one_to_run(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for kind in ("train", "evaluate", "train", "export"):
        run.next_job(kind)
    assert newest_training(tmp_path).path.name == "2-train"
    with pytest.raises(rlnb.RlnbError, match="has no training to run"):
        newest_training(tmp_path / "nowhere")


# -- member ----------------------------------------------------------------------------------------------------------


RUN = Path("/runs/r1")
DLC = {"MASTER_ADDR": "dlc-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "2", "RANK": "1", "NPROC_PER_NODE": "8"}
"""Variables from Alibaba's documentation of PAI-DLC; WORLD_SIZE and RANK count nodes."""
TRAINJOB = {
    "PET_NNODES": "2",
    "PET_NPROC_PER_NODE": "8",
    "PET_NODE_RANK": "1",
    "PET_MASTER_ADDR": "rlnb-x-node-0-0.rlnb-x",
    "PET_MASTER_PORT": "29400",
}
"""Variables that the runtime torch-distributed of Kubeflow Trainer sets (pkg/runtime/framework/plugins/torch)."""


def test_a_pod_finds_its_node_and_the_first_in_the_environment() -> None:
    assert member_of(RUN, 2, 4, DLC) == Member(1, 2, "dlc-master-0:23456")


def test_the_variables_of_a_trainjob_suffice() -> None:
    assert member_of(RUN, 2, 8, TRAINJOB) == Member(1, 2, "rlnb-x-node-0-0.rlnb-x:29400")


def test_torchruns_variables_override_those_that_may_count_processes() -> None:
    counts_processes = {**DLC, "WORLD_SIZE": "16", "RANK": "1", "PET_NNODES": "2", "PET_NODE_RANK": "1"}
    assert member_of(RUN, 2, 4, counts_processes) == Member(1, 2, "dlc-master-0:23456")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"MASTER_ADDR": "", "RANK": ""}, "MASTER_ADDR, RANK are not set"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE='two'"),
        ({"WORLD_SIZE": "16"}, "of WORLD_SIZE=16 pods does not fit r1, which needs 2 nodes"),
        ({"RANK": "2"}, "RANK=2 of WORLD_SIZE=2 pods"),
        ({"NPROC_PER_NODE": "2"}, "NPROC_PER_NODE=2 is too small: r1 has 4 ranks on GPUs"),
    ],
)
def test_pods_that_do_not_fit_the_run_are_refused(changes: dict[str, str], expected: str) -> None:
    with pytest.raises(rlnb.RlnbError, match=expected):
        member_of(RUN, 2, 4, {**DLC, **changes})


def test_a_pod_knows_its_number_even_if_other_variables_are_wrong() -> None:
    assert node_of(2, {"RANK": "1"}) == 1
    assert node_of(2, {"RANK": "7", "PET_NODE_RANK": "0"}) == 0
    assert node_of(2, {"RANK": "7"}) is None
    assert node_of(2, {}) is None
    assert node_of(1, {}) == 0


def test_a_name_that_does_not_resolve_is_said_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "RESOLVE_S", 0.1)
    with pytest.raises(rlnb.RlnbError, match=r"MASTER_ADDR=no-such-pod\.invalid does not resolve on node 1 \("):
        check_master(Member(1, 2, "no-such-pod.invalid:29500"), lambda: False)


def test_a_name_resolves_at_once_or_is_not_needed() -> None:
    start_s = time.monotonic()
    check_master(Member(1, 2, "127.0.0.1:29500"), lambda: False)
    check_master(Member(1, 2, "[::1]:29500"), lambda: False)
    check_master(Member(0, 1, "no-such-pod.invalid:29500"), lambda: False)
    check_master(Member(1, 2, "no-such-pod.invalid:29500"), lambda: True)
    assert time.monotonic() - start_s < 1
