"""The code that runs on a cluster node, inside its Dask worker: the checks of the node, then its agent."""

from __future__ import annotations

import contextlib
import dataclasses
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import dask
import psutil
from distributed import Worker, WorkerPlugin, get_worker

from rlnb.plugin import GpuFacts, gpu_facts
from rlnb_dask.sources import Sources, sources_of

END_S = 15.0
"""Seconds that an agent has to end all its child processes once its standard input is closed."""
ASK_S = 60.0
"""Longest time in seconds that the ranks' interpreter may take to list its packages."""
LEAVE_AFTER_S = "rlnb.leave-after-s"
"""Key in Dask's configuration. Its value is the number of seconds between the end of a closing worker's agents and
the exit of its process. Without the key, a signal during the worker's shutdown makes Dask wait until the queue kills
the process. Only workers that rlnb started have the key; workers of the user's own cluster do not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFacts:
    """Facts about a node that decide whether it is consistent with the other nodes."""

    host: str
    """Host name."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of Python and of packages; empty if the interpreter reported none."""
    agent_rlnb: str = ""
    """Version of rlnb in the interpreter of the agents; empty if it is not known."""
    sources: Sequence[Sources] = ()
    """Sources of rlnb and its plugins in the interpreter of the agents, and in that of the ranks if it is another."""
    problem: str = ""
    """Why no rank can run on the node; empty if one can."""
    free_bytes: int | None = None
    """Free bytes on the file system of the run."""
    cores: int | None = None
    """Cores that the job may use; None if unknown."""
    gpus: GpuFacts | None = None
    """The GPUs; None if the job does not use them."""


def where(number: int, facts: NodeFacts) -> str:
    """Return the name of a node for messages."""
    return f"node {number} ({facts.host})"


class Lifeline(WorkerPlugin):
    """Keeps the agents of a Dask worker, and ends them when the worker closes.

    A worker that has lost its scheduler would otherwise wait for its agents.
    """

    name = "rlnb-lifeline"
    idempotent = True  # otherwise a second run on the same cluster would tear down the first run's plugin

    def __init__(self) -> None:
        self.agents: list[subprocess.Popen[bytes]] = []

    def teardown(self, worker: Worker) -> None:
        """Close the agents' standard input, and wait until they have ended their child processes."""
        for agent in list(self.agents):
            assert agent.stdin is not None
            with contextlib.suppress(OSError):
                agent.stdin.close()
        deadline = time.monotonic() + END_S
        while self.agents and time.monotonic() < deadline:
            time.sleep(0.05)
        leave_after_s = dask.config.get(LEAVE_AFTER_S, None)
        if leave_after_s is not None:
            timer = threading.Timer(leave_after_s, os._exit, (0,))
            timer.daemon = True
            timer.start()


def run_agent(argv: Sequence[str], log: str, limit_s: float | None) -> int:
    """Run a node's agent to its end and return its exit status. The agent ends when this process does.

    Args:
        argv: The agent's command.
        log: File for the agent's own output.
        limit_s: Seconds the agent may run, counted from the start of this process, which starts with the queue's job.
    """
    if limit_s is not None:
        argv = [*argv, f"--deadline={psutil.Process().create_time() + limit_s:.0f}"]
    worker = get_worker()
    env = environment(nanny=worker.nanny is not None)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with open(os.open(log, flags, 0o644), "ab") as output:
        agent = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=Path(log).parent, env=env
        )
    agents = _agents(worker)
    agents.append(agent)
    try:
        return agent.wait()
    finally:
        agents.remove(agent)


def environment(nanny: bool) -> dict[str, str]:
    """Return an agent's environment: this process's, without the variables (such as thread limits) of Dask's nanny.

    Args:
        nanny: Whether a Dask nanny started this worker.
    """
    preset = dask.config.get("distributed.nanny.pre-spawn-environ", {}) if nanny else {}
    return {name: value for name, value in os.environ.items() if str(preset.get(name, "")) != value}


def busy(dask_worker: Worker) -> bool:
    """Return whether an agent runs on a worker, even if the host process that started it has ended."""
    return Lifeline.name in dask_worker.plugins and bool(_agents(dask_worker))


def _agents(worker: Worker) -> list[subprocess.Popen[bytes]]:
    """Return the list of running agents that a worker's ``Lifeline`` keeps."""
    lifeline = worker.plugins[Lifeline.name]
    assert isinstance(lifeline, Lifeline)
    return lifeline.agents


def look(
    folder: str,
    name: str,
    packages: Sequence[str],
    asset_root: str | None,
    python: str | None = None,
    *,
    modules: Sequence[str] = (),
    on_gpus: bool = False,
    contained: bool = False,
) -> NodeFacts:
    """Return the facts about this node, and write a file to the shared folder for the other nodes to find.

    Args:
        folder: A folder that all nodes should see.
        name: Name of the file to write.
        packages: Distributions that need the same version on all nodes.
        asset_root: Folder of robot assets; None is this node's ISAACSIM_ASSET_ROOT. A URL is not checked.
        python: Command of the ranks' interpreter; None is this interpreter.
        modules: Packages, as they are imported, whose sources are compared.
        on_gpus: Whether the job may use GPUs.
        contained: Whether the ranks run in a container, with an interpreter of its own.
    """
    host = socket.gethostname()
    try:
        versions, *others = _interpreter(packages, modules, python)
        sources = [sources_of(modules), *others]
    except (OSError, ValueError, subprocess.TimeoutExpired) as exc:
        return NodeFacts(host=host, problem=f"the interpreter {python} does not list its packages: {exc}")
    problem, free_bytes = "", None
    try:
        Path(folder, name).write_text(host)
        free_bytes = shutil.disk_usage(folder).free
    except OSError as exc:
        problem = f"{folder} cannot be written: {exc.strerror or exc}"
    asset_root = asset_root or os.environ.get("ISAACSIM_ASSET_ROOT")
    if asset_root and "://" not in asset_root and not os.path.isdir(asset_root):
        problem = problem or f"the asset root {asset_root} does not exist"
    try:
        gpus = gpu_facts(shlex.split(python) if python else [sys.executable]) if on_gpus else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as exc:
        gpus, problem = None, problem or f"the GPUs cannot be listed: {exc}. Check the driver with nvidia-smi"
    if gpus is not None and contained:
        gpus = dataclasses.replace(gpus, torch_cuda=None)  # the container has another torch
    cores = len(os.sched_getaffinity(0))
    return NodeFacts(
        host=host,
        versions=versions,
        agent_rlnb=version("rlnb"),
        sources=sources,
        problem=problem,
        free_bytes=free_bytes,
        cores=cores,
        gpus=gpus,
    )


def sees(folder: str, names: Sequence[str], within_s: float = 10.0) -> list[str]:
    """Return the names of files written by other nodes that this node does not see."""
    deadline = time.monotonic() + within_s
    while missing := [name for name in names if not Path(folder, name).exists()]:
        if time.monotonic() > deadline:
            break
        os.listdir(folder)  # makes NFS refresh its cache of the folder
        time.sleep(0.2)
    return missing


def listen(for_s: float = 20.0) -> int:
    """Return a port on which this node accepts connections for ``for_s`` seconds."""
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
    """Return why this node cannot connect to a port of another node, or an empty string if it can."""
    try:
        socket.create_connection((host, port), within_s).close()
    except OSError as exc:
        return str(exc)
    return ""


def _interpreter(packages: Sequence[str], modules: Sequence[str], python: str | None) -> tuple[Any, ...]:
    """Return the versions of Python and of packages in an interpreter, and its sources if it is not this one.

    Args:
        packages: Distributions.
        modules: Packages as they are imported.
        python: Command of the interpreter; None is this one.
    """
    if python is None:
        return ({"python": sys.version.split()[0], **{package: version(package) for package in packages}},)
    script = "from __future__ import annotations\nimport json, sys\nfrom importlib import metadata\n"
    script += f"{inspect.getsource(version)}\n{inspect.getsource(sources_of)}\n"
    script += "packages, modules = map(json.loads, sys.argv[1:])\n"
    script += "versions = {'python': sys.version.split()[0], **{name: version(name) for name in packages}}\n"
    script += "print(json.dumps([versions, sources_of(modules)]))"
    argv = [*shlex.split(python), "-P", "-c", script, json.dumps(packages), json.dumps(modules)]
    process = subprocess.run(argv, capture_output=True, text=True, timeout=ASK_S, check=False)
    if process.returncode or not process.stdout.strip():
        raise ValueError((process.stderr.strip().splitlines() or [f"it ended with {process.returncode}"])[-1])
    answer: tuple[Any, ...] = tuple(json.loads(process.stdout.strip().splitlines()[-1]))  # wrapper scripts may print
    return answer


def version(package: str) -> str:
    """Return the version of a distribution, ``"none"`` if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"
