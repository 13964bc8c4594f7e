"""Files and paths on the way between a kernel and a worker that see no common folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlnb.node.file_transfer import MOST_OUTS, FileTransfer


@pytest.fixture
def transfer(tmp_path: Path) -> FileTransfer:
    (tmp_path / "node").mkdir()
    return FileTransfer(tmp_path / "node")


def test_a_task_that_the_node_sees_keeps_its_path_and_another_gets_one_of_the_node(
    transfer: FileTransfer, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "lift.py").write_bytes(b"text")
    transfer.take(str(shared), "lift.py", b"text")
    task = {"id": "Lift", "source": str(shared / "lift.py")}
    assert transfer.translate({"task": task})["task"] == task
    transfer.take("/home/me/tasks", "lift.py", b"text")
    transfer.take("/home/me/tasks", "meshes/cube.usd", b"mesh")
    there: Any = transfer.translate({"tasks": [{"id": "Lift", "source": "/home/me/tasks/lift.py"}]})["tasks"]
    module = Path(there[0]["source"])
    assert module.read_bytes() == b"text"
    assert (module.parent / "meshes" / "cube.usd").read_bytes() == b"mesh"
    (shared / "lift.py").write_bytes(b"an older text")
    transfer.take(str(shared), "lift.py", b"an edit")
    assert transfer.translate({"task": task})["task"] != task, "the node still sees the older text"


def test_a_file_outside_the_folder_of_its_task_is_refused(transfer: FileTransfer) -> None:
    for name in ("../evil.py", "/etc/passwd"):
        with pytest.raises(ValueError, match="is not below the folder of its task"):
            transfer.take("/home/me/tasks", name, b"")


def test_files_that_an_answer_names_are_received_and_its_paths_are_those_of_the_kernel(transfer: FileTransfer) -> None:
    folder = 'a "folder" \\ of mine'
    out = Path(str(transfer.translate({"out": f"/home/me/{folder}"})["out"]))
    (out / "clip.npz").write_bytes(b"clip")
    (out / "other.npz").write_bytes(b"not named")
    line = json.dumps({"id": 1, "value": {"file": str(out / "clip.npz"), "text": f"written to {out}, not {out}0"}})
    (file,) = transfer.received(line.encode())
    assert (file.folder, file.name, file.content) == (f"/home/me/{folder}", "clip.npz", b"clip")
    assert not (out / "clip.npz").exists()
    value = json.loads(transfer.answer(line.encode()))["value"]
    assert value["file"] == f"/home/me/{folder}/clip.npz"
    assert value["text"] == f"written to /home/me/{folder}, not {out}0"


def test_the_folders_of_earlier_requests_are_removed_and_those_of_tasks_stay(
    transfer: FileTransfer, tmp_path: Path
) -> None:
    """A session may have thousands of previews."""
    transfer.take("/home/me/tasks", "lift.py", b"text")
    outs = [Path(str(transfer.translate({"out": f"/tmp/preview-{number}"})["out"])) for number in range(40)]
    assert len({*outs}) == 40
    assert [out.exists() for out in outs] == [False] * (40 - MOST_OUTS) + [True] * MOST_OUTS
    assert (tmp_path / "node" / "0" / "lift.py").exists()
    assert transfer.translate({"out": "/tmp/preview-39"})["out"] == str(outs[-1])
    assert transfer.answer(f'"{outs[-1]}/a"'.encode()) == b'"/tmp/preview-39/a"'


def test_the_module_of_a_task_is_not_received_and_stays(transfer: FileTransfer) -> None:
    transfer.take("/home/me/tasks", "lift.py", b"text")
    transfer.translate({"out": "/home/me/pictures"})
    there: Any = transfer.translate({"task": {"id": "Lift", "source": "/home/me/tasks/lift.py"}})["task"]
    line = json.dumps({"id": 1, "value": {"source": there["source"]}}).encode()
    assert not [*transfer.received(line)]
    assert Path(there["source"]).read_bytes() == b"text"
    assert json.loads(transfer.answer(line))["value"]["source"] == "/home/me/tasks/lift.py"


@pytest.mark.parametrize(
    "payload", [{"job_dir": "/nope"}, {"policy": {"run": "/nope"}}, {"run": "/nope"}, {"flight": "/nope"}]
)
def test_a_run_that_the_node_does_not_see_is_named(transfer: FileTransfer, payload: dict[str, Any]) -> None:
    with pytest.raises(FileNotFoundError, match=r"^/nope$"):
        transfer.translate(payload)


def test_the_files_of_a_run_stand_for_it_and_its_job_is_made_there(transfer: FileTransfer) -> None:
    run = "/home/me/runs/lift"
    transfer.take(run, "logs/model_4.pt", b"weights")
    policy: Any = transfer.translate({"policy": {"run": run, "checkpoint": "logs/model_4.pt"}})["policy"]
    assert (Path(policy["run"]) / policy["checkpoint"]).read_bytes() == b"weights"
    assert transfer.translate({"job_dir": f"{run}/jobs/1-evaluate"})["job_dir"] == f"{policy['run']}/jobs/1-evaluate"
    line = json.dumps({"error": f"{policy['run']}/logs/model_5.pt does not exist"}).encode()
    assert json.loads(transfer.answer(line)) == {"error": f"{run}/logs/model_5.pt does not exist"}


def test_a_run_that_the_machine_has_too_is_used_where_it_is(
    transfer: FileTransfer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    there = tmp_path / "rlnb-runs" / "runs" / "lift"
    transfer.place("/home/me/runs/lift", "~/rlnb-runs/runs/lift")
    with pytest.raises(FileNotFoundError, match=r"^/home/me/runs/lift/jobs/1-evaluate$"):
        transfer.translate({"job_dir": "/home/me/runs/lift/jobs/1-evaluate"})
    there.mkdir(parents=True)
    assert transfer.translate({"run": "/home/me/runs/lift"}) == {"run": str(there)}
    assert transfer.translate({"job_dir": "/home/me/runs/lift/jobs/1-evaluate"}) == {
        "job_dir": str(there / "jobs" / "1-evaluate")
    }
