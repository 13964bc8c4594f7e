"""The text of OAR's jobs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask_jobqueue  # noqa: F401  adds its defaults to Dask's configuration
import pytest

import rlnb

FULL = """#!/usr/bin/env bash

#OAR -n rlnb
#OAR -q gpu
#OAR --project robots
#OAR -l /nodes=1/gpu=4/core=2,walltime=32:30:00
set -e
trap 'rlnb_status=$?; [ "$rlnb_ready" ] || echo "The prologue failed on `uname -n`, status $rlnb_status:\
 ${BASH_COMMAND-}" >&2' EXIT
module load cuda
rlnb_ready=yes
set +e
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
'/shared/my env/bin/python' -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 8 --memory-limit 64.00GiB\
 --death-timeout 60 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0 --interface ib0
"""
SMALL = """#!/usr/bin/env bash

#OAR -n rlnb
#OAR -l /nodes=1/core=1,walltime=01:00:00

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 1 --memory-limit 4.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
GPUS = """#!/usr/bin/env bash

#OAR -n rlnb
#OAR -l /nodes=1/gpu=4,walltime=01:00:00

PYTHON -P -m rlnb_dask.worker <scheduler> --name <name> --nthreads 16 --memory-limit 64.00GiB --death-timeout 60\
 --memory-limit 0 --no-nanny --no-dashboard --dashboard-address 127.0.0.1:0
"""
"""A job for four GPUs, without further sizes."""

pytestmark = pytest.mark.filterwarnings("error:OAR Job memory")


def test_every_setting_is_in_the_job(settings: dict[str, object]) -> None:
    assert rlnb.oar(**settings).job_script() == FULL


def test_a_job_with_gpus_requests_cores_and_memory(gpu_script: Callable[[str], str]) -> None:
    assert gpu_script("oar") == GPUS


def test_a_job_without_sizes_leaves_them_to_the_site() -> None:
    script = rlnb.oar(walltime="01:00:00").job_script()
    assert script == SMALL.replace("PYTHON", shlex.quote(sys.executable))


def site(**keys: str) -> Any:
    return dask.config.set({"jobqueue.oar": {**dask.config.get("jobqueue.oar"), **keys}})


def test_memory_is_requested_by_the_core_if_the_site_names_a_property(settings: dict[str, object]) -> None:
    with site(**{"memory-per-core-property-name": "memcore"}):
        assert "#OAR -p memcore>=8192" in rlnb.oar(**settings).job_script(), "64 GiB for 8 cores"
        alone = rlnb.oar(walltime="01:00:00", gpus_per_node=4).job_script()
    assert "memcore" not in alone, "a GPU brings memory with its cores"


def test_memory_that_oar_cannot_request_is_a_problem(problems: Callable[..., str]) -> None:
    what = "memory_gib_per_node=64, but OAR has no option for memory: it comes with the cores."
    assert problems("oar", gpus_per_node=4, memory_gib_per_node=64) == what
    with site(**{"memory-per-core-property-name": "memcore"}):
        assert what not in problems("oar", gpus_per_node=4, memory_gib_per_node=64)
    assert "memory" not in problems("oar", gpus_per_node=4)


def test_the_output_is_in_the_folder_of_the_job() -> None:
    lines = rlnb.oar(walltime="01:00:00").job_arguments(1, Path("/runs/a b"))["job_extra_directives"]
    assert lines == ["-O '/runs/a b/OAR.rlnb.%jobid%.stdout'", "-E '/runs/a b/OAR.rlnb.%jobid%.stderr'"]


ANSWER = """{"7": {"state": "Waiting", "message": "FIFO scheduling"},
"8": {"state": "Terminated", "exit_code": 768, "message": "R=1"}, "9": {"state": "Terminated", "exit_code": 9},
"10": {"state": "Error", "exit_code": null, "events": [{"type": "FRAG_JOB_REQUEST"}, {"type": "SEND_KILL_JOB"}]},
"11": {"state": "Error", "exit_code": null, "events": [{"type": "FRAG_JOB_REQUEST"}, {"type": "WALLTIME"}]},
"12": {"state": "Error", "message": "no room", "events": []}, "13": {"state": "Running"}}"""


def test_the_states_of_jobs_are_read(commands: Callable[[str, str], None]) -> None:
    commands("oarstat", f"cat <<EOF\n{ANSWER}\nEOF")
    launcher = rlnb.oar()
    assert launcher.living(["7"]) == {"7": "Waiting", "13": "Running"}
    ends = {number: launcher.final(str(number)) for number in range(7, 14)}
    assert ends == {
        7: None,
        8: "done (exit status 3)",
        9: "killed (SIGKILL)",
        10: "deleted from the queue (oardel)",
        11: "ended by OAR (walltime)",
        12: "Error (no room)",
        13: None,
    }
    assert [number for number, end in ends.items() if end and launcher.unwanted([end])] == [8, 10, 12]


def test_a_refusal_is_the_line_with_its_cause() -> None:
    bad = (
        'Bad resource request (ERROR:  column "gpu" does not exist\nLINE 1: SELECT  gpu, resource_id\n                )'
    )
    last = "[ERROR] Oarsub failed, please verify your request syntax."
    reason = rlnb.oar().reason
    assert reason(f"{bad}\n{last}\n") == 'Bad resource request (ERROR:  column "gpu" does not exist'
    assert reason(f"There are not enough resources for your request\n{last}").startswith("There are not enough")


@pytest.mark.parametrize("answer", ["{", "[7]"])
def test_a_malformed_answer_is_no_answer(commands: Callable[[str, str], None], answer: str) -> None:
    commands("oarstat", f"echo '{answer}'")
    assert rlnb.oar().living(["7"]) is None


@pytest.mark.parametrize(
    ("code", "end"), [('"768"', "done (exit status 3)"), ('"?"', "Terminated"), ("[]", "Terminated")]
)
def test_an_exit_code_may_be_text(commands: Callable[[str, str], None], code: str, end: str) -> None:
    commands("oarstat", f"""echo '{{"7": {{"state": "Terminated", "exit_code": {code}}}}}'""")
    assert rlnb.oar().final("7") == end


def test_a_job_that_its_node_could_not_start_names_the_node(commands: Callable[[str, str], None]) -> None:
    job = '"state": "Error", "exit_code": null, "assigned_network_address": ["gpu07"]'
    events = '{"type": "PROLOGUE_ERROR"}, {"type": "SWITCH_INTO_ERROR_STATE"}'
    commands("oarstat", f"""echo '{{"7": {{{job}, "events": [{events}]}}}}'""")
    launcher = rlnb.oar()
    end = launcher.final("7")
    assert end == "launch failed (gpu07: the prologue has failed)"
    assert not launcher.unwanted([end])
    commands("oarstat", f"""echo '{{"7": {{{job}, "events": [{events}, {{"type": "FRAG_JOB_REQUEST"}}]}}}}'""")
    assert launcher.unwanted([launcher.final("7") or ""]), "a person has deleted it"
