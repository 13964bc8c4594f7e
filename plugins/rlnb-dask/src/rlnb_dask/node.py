"""What is done on a node of a cluster, inside its Dask worker: run an agent, and look around before that."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import dask
import psutil
from distributed import WorkerPlugin, get_worker

END_S = 15.0
"""Seconds that an agent has to end everything below it once its lifeline is gone."""
ASK_S = 60.0
"""Seconds that the ranks' interpreter has to say what is installed in it."""
leave_after_s: float | None = None
"""Seconds after its agents have ended at which a worker that is a process of ours leaves, whatever Dask still waits
for: a signal while it closes makes it wait until the queue kills it. None is a worker of somebody else's."""
_agents: list[subprocess.Popen[bytes]] = []


def run_agent(argv: Sequence[str], log: str, limit_s: float | None) -> int:
    """Run a node's agent to its end; return its exit status. It ends when this process does.

    Args:
        argv: The agent.
        log: Where its own words go.
        limit_s: Seconds from the start of this process, and so of the queue's job, at which it has to end.
    """
    if limit_s is not None:
        argv = [*argv, f"--deadline={psutil.Process().create_time() + limit_s:.0f}"]
    env = environment(nanny=get_worker().nanny is not None)
    with open(log, "ab") as output:
        agent = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=Path(log).parent, env=env
        )
    _agents.append(agent)
    try:
        return agent.wait()
    finally:
        _agents.remove(agent)


def environment(nanny: bool) -> dict[str, str]:
    """Return the environment of an agent: this one without what a nanny sets for workers that compute themselves.

    Args:
        nanny: Whether Dask's nanny started this worker.
    """
    preset = dask.config.get("distributed.nanny.pre-spawn-environ", {}) if nanny else {}
    return {name: value for name, value in os.environ.items() if str(preset.get(name, "")) != value}


class Lifeline(WorkerPlugin):
    """Ends the agents of a worker that closes, since a worker that has lost its scheduler would wait for them."""

    name = "rlnb-lifeline"
    idempotent = True  # a second run on the same cluster would else tear down the first one's

    def teardown(self, worker: Any) -> None:
        """Let go of the agents and wait until they have ended everything below them."""
        for agent in list(_agents):
            assert agent.stdin is not None
            with contextlib.suppress(OSError):
                agent.stdin.close()
        deadline = time.monotonic() + END_S
        while _agents and time.monotonic() < deadline:
            time.sleep(0.05)
        if leave_after_s is not None:
            leaving = threading.Timer(leave_after_s, os._exit, (0,))
            leaving.daemon = True
            leaving.start()


def busy() -> bool:
    """Return whether an agent runs here, though the host that started it may be gone."""
    return bool(_agents)


def look(
    shared: str, name: str, packages: Sequence[str], asset_root: str | None, python: str | None = None
) -> dict[str, Any]:
    """Return what there is on this node, and leave a word of it in the shared folder.

    Args:
        shared: A folder that all nodes should see.
        name: Of the file to write there.
        packages: Distributions whose versions have to be the same everywhere.
        python: Command of the interpreter that the ranks run in, where it is another than this one.
        asset_root: Folder of robot assets; None is this node's ISAACSIM_ASSET_ROOT. A URL is not looked for.
    """
    found: dict[str, Any] = {"host": socket.gethostname(), "versions": {}, "problem": ""}
    try:
        found["versions"] = _versions(packages, python)
    except (OSError, ValueError, subprocess.TimeoutExpired) as exc:
        found["problem"] = f"the interpreter {python} cannot be asked for its packages: {exc}"
        return found
    try:
        Path(shared, name).write_text(found["host"])
        found["free_bytes"] = shutil.disk_usage(shared).free
    except OSError as exc:
        found["problem"] = f"{shared} cannot be written: {exc.strerror or exc}"
    asset_root = asset_root or os.environ.get("ISAACSIM_ASSET_ROOT")
    if asset_root and "://" not in asset_root and not os.path.isdir(asset_root):
        found["problem"] = found["problem"] or f"the asset root {asset_root} is not there"
    return found


def sees(shared: str, names: Sequence[str], within_s: float = 10.0) -> list[str]:
    """Return which of the files that other nodes wrote cannot be seen from here."""
    deadline = time.monotonic() + within_s
    while missing := [name for name in names if not Path(shared, name).exists()]:
        if time.monotonic() > deadline:
            break
        os.listdir(shared)  # has NFS look again
        time.sleep(0.2)
    return missing


def listen(for_s: float = 20.0) -> int:
    """Return a free port of this node, on which it answers for a while."""
    listening = socket.create_server(("", 0), family=socket.AF_INET, reuse_port=False)
    port: int = listening.getsockname()[1]

    def answer() -> None:
        listening.settimeout(for_s)
        with contextlib.suppress(OSError), listening:
            while True:
                listening.accept()[0].close()

    threading.Thread(target=answer, daemon=True).start()
    return port


def reaches(host: str, port: int, within_s: float = 5.0) -> str:
    """Return why a port of another node cannot be reached from here; nothing if it can."""
    try:
        socket.create_connection((host, port), within_s).close()
    except OSError as exc:
        return str(exc)
    return ""


def free_port() -> int:
    """Return a port of this node that is free now."""
    with socket.socket() as found:
        found.bind(("", 0))
        port: int = found.getsockname()[1]
        return port


def _versions(packages: Sequence[str], python: str | None) -> dict[str, str]:
    """Return the versions of Python and of packages in an interpreter; None is this one."""
    if python is None:
        return {"python": sys.version.split()[0], **{package: version(package) for package in packages}}
    asked = f"import json, sys\nfrom importlib import metadata\n{inspect.getsource(version)}\n"
    asked += "print(json.dumps({'python': sys.version.split()[0], **{name: version(name) for name in sys.argv[1:]}}))"
    argv = [*shlex.split(python), "-c", asked, *packages]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=ASK_S, check=False)
    if done.returncode or not done.stdout.strip():
        raise ValueError((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1])
    answer: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])  # before it scripts may print their own
    return answer


def version(package: str) -> str:
    """Return the version of a distribution, ``"none"`` where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
