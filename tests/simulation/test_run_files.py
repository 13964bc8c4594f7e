"""The files of runs that requests read."""

from __future__ import annotations

from pathlib import Path

from rlnb.protocol import requests
from rlnb.protocol.requests import Policy
from rlnb.simulation.link import runs_of
from rlnb.spec import Job, Task


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
