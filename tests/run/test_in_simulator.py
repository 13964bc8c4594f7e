"""Jobs in a living simulator that are interrupted, or that are on a machine without the folder of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb.errors import RlnbError
from rlnb.jobs import jobs as module
from rlnb.jobs.jobs import in_simulator
from rlnb.records.options import CheckpointOptions
from rlnb.spec import Job
from rlnb.storage import files

WAIT_S = 60.0


def test_an_interrupted_evaluation_has_a_result(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(WAIT_S)

    class Interrupted:
        def request(self, *_: object, **__: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(module.simulator, "living_process", lambda *_: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        in_simulator(run.record, "evaluate", CheckpointOptions(checkpoint="logs/model_4.json"))
    assert [job.state() for job in run.jobs] == ["completed", "cancelled"]


@pytest.mark.parametrize(
    "name",
    ["jobs/1-evaluate/order.json", "jobs/0-train/result.json", "manifest.json", "media/../manifest.json", "/media/a"],
)
def test_another_machine_writes_no_other_files_than_those_of_its_job(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=5).wait(WAIT_S)
    folder = run.record.folder.next_job("evaluate", lambda _: {"job.json": Job(kind="evaluate")})
    out = folder.path / ".there"
    out.mkdir()
    (out / "0-film.mp4").write_bytes(b"film")
    (out / "1-result.json").write_text("{}")
    with pytest.raises(RlnbError, match="is no file of this job"):
        module._take(folder, {name: str(out / "1-result.json")})
    module._take(folder, {"media/1-evaluate.mp4": "/a/path/of/that/machine/0-film.mp4"})
    assert (run.path / "media" / "1-evaluate.mp4").read_bytes() == b"film"
    assert files.read_json(run.path / "manifest.json")
