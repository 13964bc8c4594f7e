"""The tables of queues come from the launchers only."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import asked, echo
from rlnb_jupyterlab import queues
from rlnb_jupyterlab.choices import Choices, LauncherChoice
from rlnb_jupyterlab.watcher import key_of

from rlnb.launch.detached import handle_of
from rlnb.launchers import QueueTable
from rlnb.simulation.remote_job import Note

LISTENS = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(600)
"""


@pytest.fixture
def listener() -> Iterator[subprocess.Popen[str]]:
    """A process that prints the port on which it listens."""
    process = subprocess.Popen([sys.executable, "-c", LISTENS], stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


async def test_the_dashboard_of_dask_is_linked_while_its_run_goes_on(
    jp_fetch: Any, root: Path, listener: subprocess.Popen[str]
) -> None:
    assert listener.stdout is not None
    port = int(listener.stdout.readline())
    run = echo(max_iterations=1000, agent={"iteration_s": 0.1})
    job = run.jobs[0].folder
    job.submitted.write_text(json.dumps({"queue": "slurm", "jobs": ["17"], "dashboard": port}))
    key = key_of(run)
    assert ["queue's job", "17"] in (await asked(jp_fetch, "runs", key))["overview"]
    assert (await asked(jp_fetch, "cluster"))["links"] == [], "the port belongs to another process than the run's"
    handle = job.handle.read_text()
    job.handle.write_text(json.dumps(handle_of(listener.pid)))
    links = [{"title": f"Dask for {run.id}", "url": f"proxy/{port}/status"}]
    assert (await asked(jp_fetch, "cluster"))["links"] == links
    job.handle.write_text(handle)
    run.cancel()
    assert run.wait(60).state == "cancelled"
    assert (await asked(jp_fetch, "cluster"))["links"] == []


async def test_a_warm_simulator_in_a_job_is_listed_with_its_place_and_walltime(jp_fetch: Any, root: Path) -> None:
    note = Note(root)
    note.write("slurm job 12 on node3", "node3", time.time() + 90 * 60)
    first = (await asked(jp_fetch, "cluster"))["queues"][0]
    assert (first["title"], first["error"]) == ("warm simulators", "")
    (row,) = first["rows"]
    assert row == [str(os.getpid()), "lives", "slurm job 12 on node3", "90 min", "%rlnb simulator close"]
    assert len(first["columns"]) == len(row)
    note.remove()
    tables = (await asked(jp_fetch, "cluster"))["queues"]
    assert "warm simulators" not in [table["title"] for table in tables]


async def test_a_queue_that_does_not_answer_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "WITHIN_S", 0.3)
    table = await queues._table("slurm", QueueTable(title="jobs", argv=("sleep", "4711")))
    assert table.error == "sleep does not answer: no output within 0 s"
    assert "sleep 4711" not in await _printed("ps", "-eo", "args")


async def test_slurm_without_a_cluster_says_so_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("squeue", "sinfo"):
        command = tmp_path / name
        command.write_text(f"#!/bin/sh\necho {name}: error: no controller >&2\nexit 1\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    tables = await queues.queues((await Choices(root).installed()).launchers)
    (table,) = [table for table in tables if table.launcher == "slurm"]  # another queue may be installed here
    assert table.error == "squeue is installed, but no cluster answers."
    assert table.detail == "squeue: error: no controller"


async def _printed(*argv: str) -> str:
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


def launcher(name: str, *tables: QueueTable) -> LauncherChoice:
    return LauncherChoice(name=name, tables=tables)


async def test_a_line_is_split_where_the_table_has_columns() -> None:
    columns = QueueTable(title="jobs", argv=("printf", "1|gpu|a|b\n2|cpu\n"), columns=("job", "queue", "why"))
    lines = QueueTable(title="nodes", argv=("printf", "free|4\n"))
    jobs, nodes = await queues.queues([launcher("mine", columns, lines)])
    assert (jobs.launcher, jobs.title, jobs.columns) == ("mine", "jobs", ("job", "queue", "why"))
    assert jobs.rows == [["1", "gpu", "a|b"], ["2", "cpu"]]
    assert (nodes.columns, nodes.rows) == (queues.WHOLE_LINES, [["free|4"]])


async def test_a_command_of_several_launchers_is_run_once() -> None:
    table = QueueTable(title="jobs", argv=("echo", "1"))
    tables = await queues.queues([launcher("pbs", table), launcher("sge", table), launcher("local")])
    assert [table.launcher for table in tables] == ["pbs"]


async def test_a_launcher_whose_commands_are_not_installed_has_no_table() -> None:
    assert await queues.queues([launcher("far", QueueTable(title="jobs", argv=("no-such-command-here",)))]) == []


async def test_the_queues_of_plugins_are_read_from_their_launchers(root: Path) -> None:
    installed = await Choices(root).installed()
    tables = {launcher.name: launcher.tables for launcher in installed.launchers}
    assert tables["local"] == []
    if "slurm" in tables:
        assert [table.argv[0] for table in tables["slurm"]] == ["squeue", "sinfo"]
