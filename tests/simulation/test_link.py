"""The pipes of a simulator: files of a task go before the request, and files come back into its folder only."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rlnb.errors import RlnbError
from rlnb.protocol import messages, requests
from rlnb.protocol.messages import Sent
from rlnb.protocol.requests import Policy
from rlnb.simulation.link import Link, agent_command, runs_of
from rlnb.spec import Job, Task

BEGIN = "import os\nos.write(1, b'Welcome to node3.' + bytes([0]) + b'rlnb-relay 1' + bytes([10]))\n"
ECHO = "import os\nwhile data := os.read(0, 1 << 16): os.write(1, data)"


def lines_of(link: Link) -> list[Any]:
    link.close()
    found = []
    while (line := link.next()) is not None:
        found.append(json.loads(line) if line.startswith(b"{") else line)
    return found


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "lift.py").write_text("module\n")
    (tmp_path / "cube.usd").write_text("mesh\n")
    return Task(id="Lift", source=str(tmp_path / "lift.py"), files={"cube.usd": "0", "missing.usd": "0"})


def card(link: Link, task: Task) -> None:
    request = requests.Card(task=task)
    link.send(messages.call(1, request), request)


def test_the_files_of_a_task_go_once_and_again_after_an_edit(task: Task, tmp_path: Path) -> None:
    link = Link([sys.executable, "-c", BEGIN + ECHO], os.environ, ships=True)
    card(link, task)
    card(link, task)
    (tmp_path / "lift.py").write_text("an edit of the module\n")
    card(link, task)
    found = lines_of(link)
    assert [line.get("module", "a call") if isinstance(line, dict) else line for line in found] == [
        *("lift.py", b"module", "cube.usd", b"mesh", "a call"),
        "a call",
        *("lift.py", b"an edit of the module", "a call"),
    ]
    assert found[0]["root"] == str(tmp_path)


def test_a_simulator_on_this_machine_gets_no_files(task: Task) -> None:
    link = Link([sys.executable, "-c", ECHO], os.environ)
    card(link, task)
    assert [line["verb"] for line in lines_of(link)] == ["card"]


def play(link: Link, run: Path) -> None:
    policy = Policy(run=str(run), checkpoint="logs/model_4.pt", trust=False)
    request = requests.Preview(task=Task(id="Lift"), num_envs=1, steps=1, size=(1, 1), out="/out", policy=policy)
    link.send(messages.call(1, request), request)


def test_a_run_goes_with_its_record_its_source_and_its_checkpoint_unless_it_is_there(tmp_path: Path) -> None:
    for name in ("manifest.json", "source/lift.py", "logs/model_4.pt", "logs/model_9.pt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\n")
    link = Link([sys.executable, "-c", BEGIN + ECHO], os.environ, ships=True, run_there=lambda run: None)
    play(link, tmp_path)
    play(link, tmp_path)
    lines = [line for line in lines_of(link) if isinstance(line, dict)]
    assert [line.get("module", "a call") for line in lines] == [
        *("manifest.json", "source/lift.py", "logs/model_4.pt", "a call"),
        "a call",
    ]
    assert {line["root"] for line in lines if "root" in line} == {str(tmp_path)}
    link = Link([sys.executable, "-c", BEGIN + ECHO], os.environ, ships=True, run_there=lambda run: f"~/{run.name}")
    play(link, tmp_path)
    play(link, tmp_path)
    placed, *calls = lines_of(link)
    assert placed == {"root": str(tmp_path), "original": f"~/{tmp_path.name}"}
    assert [line["verb"] for line in calls] == ["preview", "preview"]
    link = Link([sys.executable, "-c", BEGIN + ECHO], os.environ, ships=True)
    play(link, tmp_path)
    assert [line["verb"] for line in lines_of(link)] == ["preview"], "the machine sees the same folder"


SENDS = "import os; os.write(1, b'one' * 3); os.read(0, 1)"


@pytest.mark.parametrize(
    ("folder", "name"), [("elsewhere", "a.npz"), ("out", "../a.npz"), ("out", ".."), ("out", ""), ("out", ".")]
)
def test_a_file_outside_the_folder_of_the_request_is_not_written(tmp_path: Path, folder: str, name: str) -> None:
    for own in ("out", "elsewhere"):
        (tmp_path / own).mkdir()
    link = Link([sys.executable, "-c", BEGIN + SENDS], os.environ, ships=True)
    request = requests.Preview(task=Task(id="A"), num_envs=1, steps=1, size=(1, 1), out=str(tmp_path / "out"))
    link.send(messages.call(1, request), request)
    link.receive(Sent(folder=str(tmp_path / folder), name=name, bytes=3))
    assert not [*tmp_path.rglob("*.npz")]
    link.receive(Sent(folder=str(tmp_path / "out"), name="a.npz", bytes=6))
    assert (tmp_path / "out" / "a.npz").read_bytes() == b"oneone"
    link.process.kill()
    link.receive(Sent(folder=str(tmp_path / "out"), name="half.npz", bytes=3))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.npz"], "a file without its end is left out"
    link.close()


def test_the_command_of_the_agent_names_the_log_and_the_interpreter(tmp_path: Path) -> None:
    log = tmp_path / "folder" / "worker.log"
    argv, environment = agent_command(f"{sys.executable} -B", "/assets", log)
    agent = [sys.executable, "-P", "-m", "rlnb.node", "--warm", str(log)]
    assert argv == [*agent, sys.executable, "-B", "-P", "-m", "rlnb.worker", "serve"]
    assert environment["RLNB_ASSET_ROOT"] == "/assets"
    assert log.parent.is_dir()
    with pytest.raises(RlnbError, match="The worker's Python '/nope' is missing"):
        agent_command("/nope", None, log)


# -- run files -------------------------------------------------------------------------------------------------------


def test_each_request_about_a_run_names_what_it_reads(tmp_path: Path) -> None:
    for name in ("manifest.json", "source/lift.py", "logs/model_4.pt", "logs/model_9.pt", "jobs/0-train/flight0/a.npz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    always, run = [tmp_path / "manifest.json", tmp_path / "source/lift.py"], str(tmp_path)
    job = Job(kind="evaluate", options={"checkpoint": "logs/model_4.pt"})
    evaluation = requests.RunJobThere(kind="evaluate", job_dir=f"{run}/jobs/1-evaluate", job=job, out="/out")
    assert runs_of(evaluation) == {tmp_path: [*always, tmp_path / "logs/model_4.pt"]}
    flight = f"{run}/jobs/0-train/flight0"
    replay = requests.Replay(task=Task(id="Lift"), run=run, flight=flight, device="cpu", out="/out")
    assert runs_of(replay) == {tmp_path: [*always, tmp_path / "jobs/0-train/flight0/a.npz"]}
    view = requests.View(
        task=Task(id="Lift"), num_envs=1, policy=Policy(run=run, checkpoint="logs/model_9.pt", trust=False)
    )
    assert runs_of(view) == {tmp_path: [*always, tmp_path / "logs/model_9.pt"]}
    assert runs_of(requests.View(task=Task(id="Lift"), num_envs=1)) == {}
    assert runs_of(requests.Ping()) == {}
