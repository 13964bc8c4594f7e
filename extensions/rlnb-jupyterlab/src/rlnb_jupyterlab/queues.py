"""What the queues of this machine say of themselves."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
from collections.abc import Sequence
from typing import Any

import rlnb
from rlnb_jupyterlab.rows import ACTIVE

WITHIN_S = 10.0
MOST_ROWS = 500
SLURM_JOBS = ["squeue", "--me", "--noheader", "--format=%i|%j|%T|%M|%l|%D|%R"]
SLURM_NODES = ["sinfo", "--noheader", "--Node", "--format=%N|%P|%T|%c|%m|%G"]
PLAIN = {
    "pbs": ["qstat"],
    "sge": ["qstat"],
    "lsf": ["bjobs"],
    "htcondor": ["condor_q"],
    "oar": ["oarstat"],
}
"""Of other queues what they print is shown as it is; where several have the same command, the first is asked."""


async def queues() -> list[dict[str, Any]]:
    """Return a table for each queue whose commands are there."""
    found = []
    if shutil.which("squeue"):
        jobs = ["job", "name", "state", "time", "limit", "nodes", "where or why"]
        nodes = ["node", "partition", "state", "cores", "MiB", "GPUs"]
        table = await _table("slurm", "jobs of yours", SLURM_JOBS, jobs)
        if table["error"]:
            table["error"] = "Slurm's commands are here, but no cluster answers."
            return [{**table, "title": ""}]
        return [table, await _table("slurm", "nodes", SLURM_NODES, nodes)]
    asked: set[str] = set()
    for name, argv in PLAIN.items():
        if shutil.which(argv[0]) and argv[0] not in asked:
            asked.add(argv[0])
            found.append(await _table(name, "jobs", argv, ["it says"]))
    return found


def dashboards(runs: Sequence[rlnb.Run]) -> list[dict[str, str]]:
    """Return title and address, relative to the server's base, of Dask's dashboard for each run that has one here."""
    found = []
    for run in runs:
        with contextlib.suppress(rlnb.RlnbError):  # a damaged record
            job = run.record.training
            port = job.submission.dashboard if job and job.state() in ACTIVE else None
            if isinstance(port, int) and (job.handle or {}).get("host") == socket.gethostname():
                found.append({"title": f"Dask for {run.id}", "url": f"proxy/{port}/status"})
    return found


async def _table(launcher: str, title: str, argv: list[str], columns: list[str]) -> dict[str, Any]:
    table: dict[str, Any] = {"launcher": launcher, "title": title, "columns": columns, "rows": []}
    table |= {"error": "", "detail": ""}
    process = None
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
        )
        said, complained = await asyncio.wait_for(process.communicate(), WITHIN_S)
    except (OSError, TimeoutError) as exc:
        why = str(exc) or f"not within {WITHIN_S:.0f} s"
        return {**table, "error": f"{argv[0]} does not answer: {why}", "detail": why}
    finally:
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        return {**table, "error": f"{argv[0]} failed", "detail": complained.decode(errors="replace").strip()}
    lines = said.decode(errors="replace").splitlines()[:MOST_ROWS]
    width = len(columns)
    return {**table, "rows": [line.split("|", width - 1) if width > 1 else [line] for line in lines]}
