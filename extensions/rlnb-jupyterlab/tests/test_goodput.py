"""What runs cost, as a page shows it."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import psutil
import pytest
from asking import HOSTILE, asked, echo, refused
from rlnb_jupyterlab import goodput
from rlnb_jupyterlab.watcher import key_of

import rlnb


def body(*runs: rlnb.Run) -> str:
    return json.dumps({"keys": [key_of(run) for run in runs]})


async def test_a_page_gets_the_cost_of_its_runs(jp_fetch: Any, root: Path) -> None:
    done, crashed = echo().wait(60), echo(agent={"crash_at": 2, "+note": HOSTILE})
    with pytest.raises(rlnb.RunError):
        crashed.wait(60)
    costs = await asked(jp_fetch, "goodput", method="POST", body=body(done, crashed))
    assert costs["count"] == 2
    assert costs["keys"] == [key_of(done), key_of(crashed)]
    sums = [round(sum(seconds), 3) for seconds in zip(*costs["bars"], strict=True)]
    assert sums == pytest.approx(costs["seconds"], abs=0.01)
    assert sum(costs["seconds"]) == pytest.approx(rlnb.Runs([done, crashed]).goodput().parts.wall_s, abs=0.01)
    assert dict(costs["facts"])["interruptions"].startswith("1, one every ")
    assert [row[0] for row in costs["runs"]["rows"]] == [done.id, crashed.id]
    (interruption,) = costs["interruptions"]["rows"]
    assert dict(zip(costs["interruptions"]["columns"], interruption, strict=True))["cause"] == "error"


async def test_runs_without_a_training_cost_nothing(jp_fetch: Any, root: Path, made: Any) -> None:
    made(1)
    run = rlnb.runs()[0]
    (run.path / "jobs" / "0-train").rename(run.path / "jobs" / "0-evaluate")
    costs = await asked(jp_fetch, "goodput", method="POST", body=body(run))
    assert (costs["count"], costs["facts"], costs["runs"]["rows"]) == (0, [], [])


async def test_too_many_runs_are_refused(jp_fetch: Any, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goodput, "MOST", 1)
    status, refusal = await refused(jp_fetch, "goodput", method="POST", body=body(echo(), echo()))
    assert status == 400
    assert "Select at most 1" in refusal["message"]


def test_the_records_of_an_ended_run_are_read_once_until_a_job_changes(root: Path) -> None:
    run = echo().wait(60)
    with contextlib.suppress(psutil.NoSuchProcess):  # the process that started the job writes after the job's result
        psutil.Process((run.jobs[0].handle or {})["pid"]).wait(30)
    saves = run.jobs[0].folder.saves

    def written() -> str:
        sheet = goodput.costs({"a": rlnb.Run(run.path)}).runs  # as the server has a new object for each request
        return dict(zip(sheet.columns, sheet.rows[0], strict=True))["MB of checkpoints"]

    first = written()
    saves.write_text(re.sub(r'"size": \d+', '"size": 10000000', saves.read_text()))  # in place: no folder changes
    assert written() == first
    (saves.parent / "cause.json").write_text("{}")
    assert written() != first
