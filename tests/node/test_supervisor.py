"""A real agent runs one job on one node to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rlnb.metrics.events import EventReader
from rlnb.node import usage
from rlnb.node.supervisor import AdoptedWorker, Agent, edited_script, is_full
from rlnb.node.usage import sampling
from rlnb.records.layout import JobDir, RunDir
from rlnb.spec import Command, Result
from rlnb.storage import files
from rlnb.storage.files import source_hash
from rlnb.storage.serial import from_json, to_json

WAIT_S = 30.0
SLEEPS = "import time; print('up', flush=True); time.sleep(60)"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobDir:
    """An empty job with its own queue."""
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    folder = tmp_path / "run" / "jobs" / "0-export"
    folder.mkdir(parents=True)
    return JobDir(folder)


def python(code: str, **fields: object) -> Command:
    return Command(argv=(sys.executable, "-c", code), **fields)  # type: ignore[arg-type]


def start(job: JobDir, command: Command, *argv: str) -> subprocess.Popen[str]:
    files.write_once(job.command, to_json(command))
    return subprocess.Popen(
        [sys.executable, "-m", "rlnb.node", str(job.path), *argv],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(job: JobDir, command: Command, *argv: str) -> tuple[int, str]:
    """Return the exit status of an agent and its error output."""
    agent = start(job, command, *argv)
    _, error = agent.communicate(timeout=WAIT_S)
    return agent.returncode, error


def result(job: JobDir) -> Result:
    return from_json(Result, files.read_json(job.result) or {})


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition was never met"
        time.sleep(0.02)


def test_a_command_that_ends_well_leaves_a_log_a_heartbeat_and_a_result(job: JobDir) -> None:
    assert run(job, python("print('works')")) == (0, "")
    assert job.log().read_text() == "works\n"
    assert job.alive().exists()
    assert set(json.loads(job.running().read_text())) == {"pid", "host", "time"}
    assert (result(job).outcome, result(job).exit_code, result(job).values) == ("completed", 0, {})
    assert not job.reserve.exists(), "the result took the reserved space"


def test_a_command_that_fails_has_its_status_and_the_end_of_its_log_in_the_result(job: JobDir) -> None:
    assert run(job, python("print('first'); raise SystemExit(3)"))[0] == 1
    assert (result(job).outcome, result(job).exit_code) == ("failed", 3)
    assert result(job).error == "the worker ended with status 3"
    assert "first" in result(job).detail


def test_a_program_that_does_not_exist_is_a_failed_job(job: JobDir) -> None:
    assert run(job, Command(argv=("/no/such/program",)))[0] == 1
    assert result(job).outcome == "failed"
    assert "'/no/such/program' could not be started: " in result(job).error


def test_a_job_past_its_walltime_has_the_outcome_timeout(job: JobDir) -> None:
    run(job, python(SLEEPS, walltime_s=0.51))
    assert (result(job).outcome, result(job).error) == ("timeout", "stopped after its walltime of 1 s")


def test_the_cancel_file_cancels_a_queued_job(job: JobDir) -> None:
    job.cancel.write_text("{}")
    run(job, python(SLEEPS, queued=True))
    assert (result(job).outcome, result(job).error) == ("cancelled", "cancelled while it waited in the queue")
    assert not job.running().exists()


def test_an_agent_whose_run_goes_on_in_another_job_stops(job: JobDir) -> None:
    agent = start(job, python(SLEEPS))
    until(lambda: job.log().exists() and job.log().read_text())
    job.successor.write_text('{"job": "1-train"}')
    agent.communicate(timeout=WAIT_S)
    assert (result(job).outcome, result(job).error) == (
        "cancelled",
        "stopped: 1-train was started to continue this run",
    )


@pytest.mark.parametrize("record", ["{", "[]", '{"save_s": "soon"}', '{"save_s": null}'])
def test_a_damaged_request_to_cancel_ends_the_job_at_once(job: JobDir, record: str) -> None:
    job.started.write_text('{"saves_when_stopped": true}')
    agent = start(job, python(SLEEPS))
    until(lambda: job.log().exists() and job.log().read_text())
    job.cancel.write_text(record)
    agent.communicate(timeout=10)
    assert result(job).outcome == "cancelled"


def test_a_signal_cancels_a_job_on_one_node(job: JobDir) -> None:
    agent = start(job, python(SLEEPS))
    until(lambda: job.log().exists() and job.log().read_text())
    agent.send_signal(signal.SIGTERM)
    agent.communicate(timeout=WAIT_S)
    assert (result(job).outcome, result(job).error) == ("cancelled", "cancelled")


def test_a_signal_on_one_of_several_nodes_is_recorded_as_an_interruption(job: JobDir) -> None:
    agent = start(job, python(SLEEPS, nodes=2), "--node", "1", "--master", "h:1")
    until(lambda: job.log(1).exists() and job.log(1).read_text())
    agent.send_signal(signal.SIGTERM)
    agent.communicate(timeout=WAIT_S)
    assert (result(job).outcome, result(job).values) == ("failed", {"node": 1, "interrupted": True})
    assert "was revoked by the queue" in result(job).error
    assert result(job).detail == "", "the log has no cause of an interruption"


def test_a_signal_to_a_job_that_goes_on_is_an_interruption_even_on_one_node(job: JobDir) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from rlnb.node.supervisor import Agent; from rlnb.node.child import spawn\n"
        "from rlnb.records.layout import JobDir; from rlnb.spec import Command; from rlnb.storage import files\n"
        "from rlnb.storage.serial import from_json; job = JobDir(Path(sys.argv[1]))\n"
        "agent = Agent(job, from_json(Command, files.read_json(job.command)), revocable=True)\n"
        "agent.run(lambda command: spawn(command, job.log())); print(agent.signalled)"
    )
    files.write_once(job.command, to_json(python(SLEEPS)))
    argv = [sys.executable, "-c", code, str(job.path)]
    agent = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    until(lambda: job.log().exists() and job.log().read_text())
    agent.send_signal(signal.SIGTERM)
    assert agent.communicate(timeout=WAIT_S)[0] == "True\n"
    assert (result(job).outcome, result(job).values) == ("failed", {"interrupted": True})


def test_a_node_stops_at_its_deadline(job: JobDir) -> None:
    run(job, python(SLEEPS), "--deadline", str(time.time() + 0.3))
    assert (result(job).outcome, result(job).values) == ("timeout", {"interrupted": True})


def test_the_host_can_move_the_deadline_in_both_directions(job: JobDir) -> None:
    agent = start(job, python(SLEEPS), "--lifeline", "--deadline", str(time.time() + 0.3))
    files.replace_json(job.deadline, {"time_s": time.time() + 100.0})
    until(lambda: job.log().exists() and job.log().read_text())
    time.sleep(1.5)
    assert not job.result.exists()
    files.replace_json(job.deadline, {"time_s": time.time()})
    until(job.result.exists)
    assert agent.stdin is not None
    agent.communicate(timeout=WAIT_S)
    assert (result(job).outcome, result(job).values) == ("timeout", {"interrupted": True})


def test_every_node_has_its_rank_in_the_environment_and_only_the_first_writes_a_success(job: JobDir) -> None:
    command = python("import os; print(os.environ['PET_NODE_RANK'], os.environ['PET_MASTER_PORT'])", nodes=2)
    assert run(job, command, "--node", "1", "--master", "h:29500") == (0, "")
    assert job.log(1).read_text() == "1 29500\n"
    assert not job.result.exists()


def test_a_job_that_was_started_is_not_started_twice(job: JobDir) -> None:
    job.running().write_text(json.dumps({"host": "first", "time": "noon"}))
    status, error = run(job, python("print('again')"))
    assert status == 1
    assert "was started on first at noon and cannot be started twice" in error
    assert not job.log().exists()
    assert not job.result.exists()


def test_an_agent_whose_lifeline_closes_writes_no_result(job: JobDir) -> None:
    agent = start(job, python(SLEEPS), "--lifeline")
    until(lambda: job.log().exists() and job.log().read_text())
    agent.communicate(timeout=WAIT_S)  # closes its standard input
    assert agent.returncode == 1
    assert not job.result.exists()


@pytest.mark.parametrize("to_all", [False, True], ids=["the agent", "all processes"])
def test_a_signal_to_a_revocable_agent_is_an_interruption(job: JobDir, to_all: bool) -> None:
    agent = start(job, python(SLEEPS), "--revocable")
    until(lambda: job.log().exists() and job.log().read_text())
    for process in [*(psutil.Process(agent.pid).children() if to_all else ()), psutil.Process(agent.pid)]:
        process.terminate()
    assert agent.wait(WAIT_S) == 1
    assert "was revoked by the queue" in result(job).error
    assert result(job).interrupted


def test_the_slot_of_a_long_training_never_looks_old(job: JobDir, tmp_path: Path) -> None:
    """Cleaners of temporary folders remove old files, and without its file a slot would be given to a second run."""
    agent = start(job, python(SLEEPS, queued=True))
    until(lambda: job.log().exists() and job.log().read_text())
    (slot,) = (tmp_path / "queue" / "slots").iterdir()
    os.utime(slot, (1.0, 1.0))
    until(lambda: slot.stat().st_mtime > 1.0)
    agent.terminate()
    agent.communicate(timeout=WAIT_S)


def test_a_disk_that_does_not_answer_counts_as_having_space(tmp_path: Path) -> None:
    assert not is_full(tmp_path)
    assert not is_full(tmp_path / "gone"), "the result is still to be written"


def test_the_result_of_a_worker_is_kept(job: JobDir) -> None:
    record = to_json(Result(outcome="failed", error="a detailed cause"))
    code = f"import sys; open({str(job.result)!r}, 'w').write({json.dumps(record)!r}); sys.exit(1)"
    run(job, python(code))
    assert result(job).error == "a detailed cause"


ON_GPUS = """
import sys
from rlnb.machine import cuda

cuda.FILES = (sys.argv.pop(1),)
import rlnb.node.__main__ as node
sys.exit(node.main(sys.argv[1:]))
"""
SEES = "import os; print('sees', os.environ.get('CUDA_VISIBLE_DEVICES', 'all'), flush=True)"


def uuid(end: str) -> str:
    return f"GPU-00000000-0000-0000-0000-0000000000{end}"


Launch = Callable[..., "tuple[JobDir, subprocess.Popen[bytes]]"]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Callable[..., None]) -> Iterator[Launch]:
    """Return a function that starts the agent of a training that reports the GPUs that it sees, and then sleeps."""
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    agents: list[subprocess.Popen[bytes]] = []

    def start(visible: str | None, device: str = "auto", **fields: Any) -> tuple[JobDir, subprocess.Popen[bytes]]:
        machine("0a,0b,0c,0d", visible)
        run = RunDir(tmp_path / f"run{len(agents)}")
        run.path.mkdir()
        folder = run.next_job("train")
        command = python(f"{SEES}; {SLEEPS}", queued=True, device=device, **fields)
        files.write_once(folder.command, to_json(command))
        agents.append(subprocess.Popen([sys.executable, "-c", ON_GPUS, str(tmp_path / "driver"), str(folder.path)]))
        return folder, agents[-1]

    yield start
    for agent in agents:
        agent.terminate()
        agent.wait(WAIT_S)


def sees(started: tuple[JobDir, subprocess.Popen[bytes]]) -> str:
    """Return the GPUs that a training sees, once it has started."""
    job, _ = started
    until(lambda: job.log().exists() and job.log().read_text().endswith("\n"))  # a print may be written in parts
    return job.log().read_text().split()[1]


def test_runs_of_kernels_with_different_gpus_never_share_one(launch: Launch) -> None:
    assert sees(launch("2,3", max_running=2, gpu_per_slot=True)) == "2"
    assert sees(launch(None, max_running=4, gpu_per_slot=True)) == "0"
    assert sees(launch("0,1,2,3", max_running=4, gpu_per_slot=True)) == "1"
    assert sees(launch("2,3", max_running=2, gpu_per_slot=True)) == "3"


def test_a_kernel_with_one_gpu_waits_for_it(launch: Launch) -> None:
    first = launch(None, max_running=4, slots=4, gpu_per_slot=True)
    assert sees(first) == "0,1,2,3"
    job, _ = launch("3", max_running=1)
    time.sleep(1.0)
    assert not job.log().exists(), "the first run holds all GPUs"
    first[1].terminate()
    assert sees((job, first[1])) == "3", "its own environment, in which the warm simulator can run it"


def test_a_run_on_a_numbered_gpu_takes_that_gpu(launch: Launch) -> None:
    assert sees(launch(None, "cuda:1", max_running=4)) == "all"
    assert sees(launch(None, max_running=4, gpu_per_slot=True)) == "0"
    assert sees(launch(None, max_running=4, gpu_per_slot=True)) == "2"


def test_runs_on_the_cpu_and_on_gpus_count_together(launch: Launch) -> None:
    assert sees(launch(None, max_running=1, gpu_per_slot=True)) == "0"
    for device in ("cpu", "cuda:1"):
        job, agent = launch(None, device, max_running=1)
        time.sleep(1.0)
        assert not job.log().exists(), "one run at a time"
        agent.terminate()
        agent.wait(WAIT_S)


def test_runs_that_share_gpus_take_numbered_slots(launch: Launch) -> None:
    assert [sees(launch("0", max_running=2)) for _ in range(2)] == ["0", "0"]


NVML = """
from types import SimpleNamespace

class NVMLError(Exception): pass
CARDS = [f"GPU-00000000-0000-0000-0000-0000000000{end}" for end in ("0b", "0a")]  # by PCI bus, not by speed
def nvmlInit(): pass
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetHandleByUUID(uuid):
    if uuid not in CARDS: raise NVMLError(uuid)
    return CARDS.index(uuid)
def nvmlDeviceGetUtilizationRates(card): return SimpleNamespace(gpu=10 * (card + 1))
def nvmlDeviceGetMemoryInfo(card): return SimpleNamespace(used=(card + 1) * 2**30)
"""


@pytest.mark.parametrize(
    ("device", "visible", "order", "percent"),
    [
        ("auto", "0", None, [20.0]),
        ("auto", "0", "PCI_BUS_ID", [10.0]),
        ("cuda:1", None, None, [10.0]),
        ("auto", "GPU-00000000-0000-0000-0000-00000000000a", None, [20.0]),
        ("cuda", None, None, [20.0, 10.0]),
        ("cpu", None, None, []),
    ],
)
def test_the_curves_are_those_of_the_runs_own_gpus(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: Callable[..., None],
    device: str,
    visible: str | None,
    order: str | None,
    percent: list[float],
) -> None:
    nvml = types.ModuleType("pynvml")
    exec(NVML, vars(nvml))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(usage, "SAMPLE_S", 0.0)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    machine("0a,0b", visible, order=order)
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    job = run.next_job("train")
    gpus = [gpu.uuid or gpu.name for gpu in Agent(job, python(SLEEPS, device=device))._job_gpus()]
    with subprocess.Popen(["sleep", "60"]) as busy, sampling(job, 0, gpus, is_script=True) as tick:
        tick()
        tick()
        busy.kill()
    reader = EventReader(run.system)
    reader.refresh()
    values = {tag: [*column][-1][2] for tag, column in reader.scalars.items() if tag.endswith("percent")}
    assert values == {f"system/node0/gpu{number}_percent": value for number, value in enumerate(percent)}


# -- adopted workers --------------------------------------------------------------------------------------------------


PROCESS = """
import os, sys
for line in sys.stdin:
    os.write(int(sys.argv[1]), line.encode())
"""


@pytest.fixture
def adopted() -> Iterator[AdoptedWorker]:
    """A process that sends each line back as a message of its own."""
    replies, writer = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(writer)], stdin=subprocess.PIPE, pass_fds=[writer]
    ) as process:
        yield AdoptedWorker(process, replies)
        process.kill()


def until_returned(adopted: AdoptedWorker) -> None:
    deadline = time.monotonic() + 20
    while adopted.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_is_returned_before_a_job_and_once_it_says_so(adopted: AdoptedWorker) -> None:
    assert (adopted.returned, adopted.poll()) == (True, 0)
    adopted.begin(b'{"ready": true}\n')
    assert (adopted.returned, adopted.poll()) == (False, None)
    adopted.begin(b'{"returned": true, "pid": 7}\n')
    until_returned(adopted)
    assert (adopted.poll(), adopted.returned, adopted.line) == (0, True, b'{"returned": true, "pid": 7}\n')
    assert adopted.ready


def test_a_message_that_the_process_has_started_is_not_the_end_of_the_job(adopted: AdoptedWorker) -> None:
    adopted.begin(b'{"ready": true}\n')
    deadline = time.monotonic() + 20
    while not adopted.ready:
        assert adopted.poll() is None
        assert time.monotonic() < deadline
    assert adopted.poll() is None


def test_the_exit_of_the_process_ends_the_job(adopted: AdoptedWorker) -> None:
    adopted.begin(b'{"ready": true}\n')
    adopted._process.kill()
    until_returned(adopted)
    assert (adopted.poll(), adopted.returned) == (-9, False)


# -- script ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "is_edited"), [("print(1)", False), ("print(2)", True), (None, False)])
def test_a_script_with_another_text_than_the_recorded_one_is_named(
    text: str | None, is_edited: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    task = {"id": "train", "source": str(script), "source_sha256": source_hash(b"print(1)")}
    run = RunDir(tmp_path)
    run.manifest.write_text(json.dumps({"script": [str(script), "--seed", "1"], "task": task}))
    if text is not None:
        script.write_text(text)
    assert edited_script(run).startswith(f"{script} was edited") is is_edited


@pytest.mark.parametrize("manifest", [{}, {"script": []}, {"script": ["/no"], "task": 3}, {"script": 3, "task": {}}])
def test_a_run_without_a_script_has_none_that_was_edited(manifest: dict[str, object], tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.manifest.write_text(json.dumps(manifest))
    assert edited_script(run) == ""
