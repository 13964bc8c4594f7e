"""The nodes that have ended a job of Slurm, from the answers of Slurm 22.05; tests/cluster has a Prolog that fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rlnb_dask.queues import queries, slurm_nodes
from rlnb_dask.queues.slurm_nodes import Reason, reasons_of, state_of

import rlnb

NODE = (
    "NodeName={node} Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=1.10 AvailableFeatures=(null)"
    " ActiveFeatures=(null) Gres=gpu:2 NodeAddr=127.0.0.1 NodeHostName=vm Port=17818 Version=22.05.8"
    " OS=Linux 6.1.0-28-amd64 #1 SMP PREEMPT_DYNAMIC RealMemory=8000 AllocMem=0 FreeMem=9000 Sockets=4 Boards=1"
    " State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=main,first"
    " BootTime=1795600000 SlurmdStartTime=1795682000 LastBusyTime=1795682858 CfgTRES=cpu=4,mem=8000M,billing=4"
    " AllocTRES= CapWatts=n/a CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0"
    " ExtSensorsTemp=n/s{end}\n"
)
"""A line of ``scontrol --oneliner show node`` with ``SLURM_TIME_FORMAT=%s``."""
BEGIN, END = 1795682850, 1795682858
JOB = (
    "JobId=46 JobName=rlnb UserId=ann(1001) GroupId=ann(1001) MCS_label=N/A Priority=4294901715 Nice=0"
    " Account=(null) QOS=(null) JobState={state} Reason=None Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1"
    f" Reboot=0 ExitCode=0:0 RunTime=00:00:08 TimeLimit=00:10:00 TimeMin=N/A SubmitTime={BEGIN - 2}"
    f" EligibleTime={BEGIN - 2} AccrueTime={BEGIN - 2} StartTime={BEGIN} EndTime={END} Deadline=N/A"
    " SuspendTime=None Partition=main AllocNode:Sid=vm:4711 ReqNodeList=(null) ExcNodeList=(null)"
    " NodeList=node[0-1] BatchHost=node0 NumNodes=2 NumCPUs=2 NumTasks=2 CPUs/Task=1"
)
"""The line of a job of two nodes, by the same command."""


def drain(node: str, text: str, time_s: int = END, state: str = "IDLE+DRAIN") -> str:
    return NODE.format(node=node, state=state, end=f" Reason={text} [slurm@{time_s}]")


WELL = NODE.format(node="node0", state="IDLE", end="")


def job(state: str, **fields: str) -> dict[str, str]:
    pairs = dict(pair.split("=", 1) for pair in JOB.format(state=state).split() if "=" in pair)
    return {**pairs, **fields}


def test_the_reason_of_a_node_may_have_spaces_and_brackets() -> None:
    answer = WELL + drain("node1", "Prolog error") + drain("node2", "disk [sda] of rack=3, see ann@site", 7)
    assert reasons_of(answer) == [
        Reason(node="node1", text="Prolog error", time_s=END),
        Reason(node="node2", text="disk [sda] of rack=3, see ann@site", time_s=7),
    ]
    assert reasons_of("slurm_load_node error: Unable to contact slurm controller") == []


def state(word: str, *lines: str, **fields: str) -> str:
    return state_of(job(word, **fields), reasons_of("".join(lines)))


@pytest.mark.parametrize(
    "text",
    [
        "Prolog error",
        "batch job complete failure",
        "Duplicate jobid",
        "Low RealMemory (reported:7000 < 100.00% of configured:8000)",
        "gres/gpu count reported lower than configured (0 < 2)",
    ],
)
@pytest.mark.parametrize("word", ["CANCELLED", "FAILED"])
def test_a_job_that_slurm_ends_as_it_drains_a_node_could_not_start(word: str, text: str) -> None:
    end = state(word, WELL, drain("node1", text, END + 1))
    assert end == f"launch failed (node1: {text})"
    launcher = rlnb.slurm(walltime="01:00:00")
    assert launcher.meaning("46", end) == f"Slurm's job 46 could not start (node1: {text})"
    assert not launcher.unwanted([end])


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("", "CANCELLED"),
        (drain("node1", "bad disk"), "CANCELLED (node1: bad disk)"),  # by an administrator
        (drain("node1", "NHC: check_fs_mount: /scratch not mounted"), None),
        (drain("node1", "Kill task failed"), "CANCELLED (node1: Kill task failed)"),  # a consequence of scancel
        (drain("node1", "Prolog error", END - 7), "CANCELLED (node1: Prolog error)"),  # long before scancel
        (drain("node1", "Prolog error", BEGIN - 3600), "CANCELLED"),  # of an earlier job
        (drain("node1", "batch job complete failure", END + 60), "CANCELLED"),  # UnkillableStepTimeout
    ],
)
def test_a_person_who_cancels_a_job_is_no_fault_of_a_node(line: str, end: str | None) -> None:
    seen = state("CANCELLED", WELL, line)
    assert end is None or seen == end
    launcher = rlnb.slurm(walltime="01:00:00")
    assert launcher.unwanted([seen])
    assert "was cancelled in the queue (scancel)" in launcher.meaning("46", seen)


def test_a_job_that_was_cancelled_while_it_waited_has_no_nodes(commands: Callable[[str, str], None]) -> None:
    waiting = JOB.format(state="CANCELLED").replace(f"StartTime={BEGIN}", f"StartTime={END}")
    commands("scontrol", f"[ $3 = job ] && echo '{waiting.replace('node[0-1]', '(null)')}' || exit 9")
    assert slurm_nodes.final_states(["46"], 1.0) == {"46": "CANCELLED"}


def test_the_node_that_is_lost_is_named() -> None:
    end = state("NODE_FAIL", WELL, drain("node1", "Not responding", state="DOWN+NOT_RESPONDING"))
    assert end == "NODE_FAIL (node1: Not responding)"
    launcher = rlnb.slurm(walltime="01:00:00")
    assert launcher.meaning("46", end) == "Slurm's job 46 has lost a node; node1: Not responding"
    assert not launcher.unwanted([end])
    assert launcher.meaning("46", "BOOT_FAIL") == "Slurm's job 46 has lost a node, which did not boot"


def test_a_job_that_slurm_misses_on_a_drained_node_could_not_start() -> None:
    end = state("NODE_FAIL", WELL, drain("node1", "Prolog error", BEGIN + 1))
    assert end == "launch failed (node1: Prolog error)"
    assert state("NODE_FAIL", WELL, drain("node1", "Prolog error", BEGIN - 3600)) == "NODE_FAIL"


@pytest.mark.parametrize("word", ["COMPLETED", "TIMEOUT", "PREEMPTED", "OUT_OF_MEMORY", "RUNNING", "PENDING"])
def test_a_node_has_no_part_in_other_ends(word: str) -> None:
    assert state(word, drain("node1", "Prolog error")) == word


def test_a_drain_that_comes_after_the_end_is_waited_for(commands: Callable[[str, str], None]) -> None:
    well, drained = WELL.strip(), drain("node1", "Prolog error").strip()
    last = f"[ -e $0.seen ] && echo '{drained}'; echo '{well}'; touch $0.seen"
    commands("scontrol", f"if [ $3 = job ]; then echo '{JOB.format(state='CANCELLED')}'; else {last}; fi")
    commands("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert slurm_nodes.final_states(["46"]) == {"46": "CANCELLED"}, "there was no time to wait"
    assert slurm_nodes.final_states(["46"], 1.0) == {"46": "launch failed (node1: Prolog error)"}


@pytest.mark.parametrize(
    ("account", "is_launch_failure"),
    [
        ("CANCELLED by 1001", False),
        ("CANCELLED by 0", True),
        ("CANCELLED by 64030", True),
        ("FAILED", True),
        ("", True),
    ],
)
def test_the_accounts_tell_whether_this_user_has_cancelled_the_job(
    commands: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch, account: str, is_launch_failure: bool
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 1001)
    line = drain("node1", "Prolog error").strip()
    commands("scontrol", f"[ $3 = job ] && echo '{JOB.format(state='CANCELLED')}' || echo '{line}'")
    commands("sacct", f"echo '{account}'")
    assert queries.is_launch_failure(slurm_nodes.final_states(["46"])["46"]) is is_launch_failure
