"""The launchers for queues: what is asked of them, and the text that their jobs become. Starts nothing."""

from __future__ import annotations

import functools
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb import HostedLauncher, Manifest, Problem
from rlnb_dask.containers import RUNTIMES

WALLTIME = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)")
LOOPBACK = "127.0.0.1:0"
"""Dask's web pages ask nobody who they are."""
CLASSES = {
    "slurm": "SLURM",
    "pbs": "PBS",
    "sge": "SGE",
    "lsf": "LSF",
    "htcondor": "HTCondor",
    "oar": "OAR",
}
"""Name of each launcher to the beginning of dask-jobqueue's names of it."""


class QueueLauncher(HostedLauncher):
    """Runs trainings as jobs of a cluster's queue, through dask-jobqueue.

    What a site sets in dask's own ``jobqueue.yaml`` (https://jobqueue.dask.org) holds where nothing else is said.

    Args:
        name: Which queue: a key of ``CLASSES``.
        nodes: Machines of each training.
        cpus_per_node: Cores to ask for on each.
        gpus_per_node: GPUs to ask for on each; a rank is started on every one.
        memory_gib_per_node: Memory to ask for on each.
        walltime: ``"08:00:00"`` or ``"2-00:00:00"``. There is no default.
        partition: Slurm's partition, elsewhere the queue.
        account: Who pays.
        interface: Network of the nodes over which ranks and Dask talk, ``"ib0"``; None leaves it to them.
        host_interface: The same on the machine that this is called on.
        directives: Further options of the job, as the queue's own commands take them: ``["--constraint=h200"]``.
        prologue: Lines of shell before anything is started: ``["module load cuda"]``.
        python: Interpreter of the nodes; None is this one, on a shared folder.
        max_restarts: Interruptions (walltime, preemption, lost nodes) after which a training goes on by itself from
            its last checkpoint.
        grace_s: Seconds before the end of its walltime at which it is stopped for that.
        hang_after_s: Seconds without a new scalar after which a rank is taken to hang: where every rank is goes to the
            log, and the training is ended. None waits for ever.
        container: An image that the ranks run in: a ``.sif`` file or ``"docker://..."``. The agents run outside of it,
            with ``python``; rlnb and the plugins have to be in both.
        container_runtime: What runs it: ``"apptainer"``, or ``"docker"``, whose ``container`` is an image's name.
        dashboard: Whether Dask's own dashboard of a job is served on this machine's loopback (needs bokeh). It says
            little of a training, and each start waits for its imports.
    """

    max_running = None
    walltime_s = None

    def __init__(
        self,
        name: str,
        *,
        nodes: int = 1,
        cpus_per_node: int | None = None,
        gpus_per_node: int = 0,
        memory_gib_per_node: float | None = None,
        walltime: str | None = None,
        partition: str | int | None = None,
        account: str | int | None = None,
        interface: str | None = None,
        host_interface: str | None = None,
        directives: Sequence[str] | str = (),
        prologue: Sequence[str] | str = (),
        python: str | None = None,
        max_restarts: int = 3,
        grace_s: int = 60,
        hang_after_s: float | None = 900.0,
        container: str | None = None,
        container_runtime: str = "apptainer",
        dashboard: bool = False,
    ) -> None:
        self.name, self.nodes, self.max_restarts = name, nodes, max_restarts
        self._settings: dict[str, Any] = {
            "nodes": nodes,
            "cpus_per_node": cpus_per_node,
            "gpus_per_node": gpus_per_node,
            "memory_gib_per_node": memory_gib_per_node,
            "walltime": walltime,
            "partition": str(partition) if isinstance(partition, int) else partition,
            "account": str(account) if isinstance(account, int) else account,
            "interface": interface,
            "host_interface": host_interface,
            "directives": [directives] if isinstance(directives, str) else list(directives),
            "prologue": [prologue] if isinstance(prologue, str) else list(prologue),
            "python": python,
            "max_restarts": max_restarts,
            "grace_s": grace_s,
            "hang_after_s": hang_after_s,
            "container": container,
            "container_runtime": container_runtime,
            "dashboard": dashboard,
        }

    @property
    def settings(self) -> Mapping[str, Any]:
        """Arguments that make one like this."""
        return self._settings

    @property
    def nproc_per_node(self) -> int | None:
        """Ranks on each node where a training says nothing of them; None is one."""
        return self._settings["gpus_per_node"] or None

    @property
    def limit_s(self) -> float | None:
        """Seconds for which a node may train, from when the queue has started its job; None knows no limit."""
        walltime_s = self._walltime_s()
        return None if walltime_s is None else walltime_s - self._settings["grace_s"]

    def _walltime_s(self) -> int | None:
        found = WALLTIME.fullmatch(self._settings["walltime"] or "")
        if found is None:
            return None
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds

    @property
    def gang(self) -> bool:
        """Whether one job of the queue is all nodes of a training; else each is a job, and they wait for each other."""
        return self.name == "slurm"

    def argv(self, job_dir: Path) -> Sequence[str]:
        """Return what starts the host of a job."""
        return [sys.executable, "-P", "-m", "rlnb_dask.host", str(job_dir)]

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return what is missing or malformed, and where all is well what the queue itself says of such a job."""
        problems = [*self._check_words()]
        return problems or [*self._check_queue()]

    def job_script(self, nodes: int | None = None) -> str:
        """Return the text of the job, as it is given to the queue; Dask's own address and name stand for themselves.

        Args:
            nodes: Machines; None is as many as each training gets.
        """
        job = job_class(self.name)("<scheduler>", name="<name>", **self.job_arguments(nodes or self.nodes))
        return str(job.job_script())

    def job_arguments(self, nodes: int, log_directory: Path | None = None) -> dict[str, Any]:
        """Return dask-jobqueue's own arguments for a job.

        Args:
            nodes: Machines of the training.
            log_directory: Where the queue writes what the job prints.
        """
        asked, several = self._settings, self.gang and nodes > 1
        cores, gib = asked["cpus_per_node"] or 1, asked["memory_gib_per_node"] or 4.0
        python = shlex.quote(asked["python"] or sys.executable)
        arguments: dict[str, Any] = {
            "cores": nodes if several else 1,
            "processes": nodes if several else 1,
            "memory": f"{gib * (nodes if several else 1):g}GiB",
            "queue": asked["partition"],
            "account": asked["account"],
            "walltime": self._walltime(),
            "interface": asked["interface"],
            "worker_command": "rlnb_dask.worker",
            # No limit of memory: Dask would see its own process alone, which does nothing.
            "worker_extra_args": [
                *("--memory-limit", "0", "--no-nanny", "--no-dashboard", "--dashboard-address", LOOPBACK)
            ],
            "job_name": "rlnb",
            "job_script_prologue": [
                *(self._site("job-script-prologue") or ()),
                *asked["prologue"],
                *self._environment(),
            ],
            "python": python,
            "log_directory": str(log_directory) if log_directory else None,
        }
        getattr(self, f"_{self.name}")(arguments, nodes, cores, gib)
        more = self._site("job-extra-directives") or ()  # ours would take their place
        if self.name == "htcondor":
            arguments["job_extra_directives"] = {**dict(more), **arguments["job_extra_directives"]}
        else:
            own = arguments.get("job_extra_directives", [])
            arguments["job_extra_directives"] = [*more, *own, *asked["directives"]]
        return {name: value for name, value in arguments.items() if value is not None}

    def _site(self, key: str, *, unasked: bool = False) -> Any:
        """Return what the site's ``jobqueue.yaml`` says; ``unasked``: unless nodes of some size are asked for."""
        import dask

        asks = any(self._settings[name] for name in ("cpus_per_node", "gpus_per_node", "memory_gib_per_node"))
        return None if unasked and asks else dask.config.get(f"jobqueue.{self.name}.{key}", None)

    def _slurm(self, arguments: dict[str, Any], nodes: int, cores: int, gib: float) -> None:
        gpus, said = self._settings["gpus_per_node"], self._settings["cpus_per_node"]
        # Slurm ends what it has started itself more surely than what a script has. From 22.05 on, srun does not take
        # the cores of a task from the job.
        each = f" --cpus-per-task={cores}" if said else ""
        arguments["python"] = f"srun --kill-on-bad-exit=1{each} {arguments['python']}"
        # Memory and tasks are said for each node below.
        arguments["job_directives_skip"] = ["-n 1", "--cpus-per-task", "--mem="]
        arguments["job_extra_directives"] = [
            f"--nodes={nodes}",
            "--ntasks-per-node=1",
            "--no-requeue",  # rlnb resumes in a further job, so there are never two copies of one
            *([f"--cpus-per-task={cores}"] if said else []),
            *([f"--mem={gib * 1024:.0f}M"] if self._settings["memory_gib_per_node"] else []),
            *([f"--gpus-per-node={gpus}"] if gpus else []),
        ]

    def _pbs(self, arguments: dict[str, Any], nodes: int, cores: int, gib: float) -> None:
        gpus = self._settings["gpus_per_node"]
        chunk = f"select=1:ncpus={cores}:mem={gib * 1024:.0f}mb" + (f":ngpus={gpus}" if gpus else "")
        arguments["resource_spec"] = self._site("resource-spec", unasked=True) or chunk

    def _sge(self, arguments: dict[str, Any], nodes: int, cores: int, gib: float) -> None:
        arguments["project"] = arguments.pop("account")
        if gpus := self._settings["gpus_per_node"]:
            arguments["job_extra_directives"] = [f"-l gpu={gpus}"]
        arguments["cores"], arguments["processes"] = cores, 1

    def _lsf(self, arguments: dict[str, Any], nodes: int, cores: int, gib: float) -> None:
        arguments["project"] = arguments.pop("account")
        arguments["ncpus"] = self._site("ncpus", unasked=True) or cores
        arguments["mem"] = self._site("mem", unasked=True) or int(gib * 2**30)
        if gpus := self._settings["gpus_per_node"]:
            arguments["job_extra_directives"] = [f"-gpu num={gpus}"]

    def _htcondor(self, arguments: dict[str, Any], nodes: int, cores: int, gib: float) -> None:
        for unknown in ("queue", "account", "walltime"):
            arguments.pop(unknown)
        arguments["disk"], arguments["cores"] = "1GiB", cores
        gpus, words = self._settings["gpus_per_node"], [word.partition("=") for word in self._settings["directives"]]
        arguments["job_extra_directives"] = {name.strip(): value.strip() for name, _, value in words}
        if gpus:
            arguments["job_extra_directives"]["request_gpus"] = str(gpus)

    def _oar(self, arguments: dict[str, Any], nodes: int, cores: int, gib: float) -> None:
        arguments["project"] = arguments.pop("account")
        gpus = self._settings["gpus_per_node"]
        chunk = f"/nodes=1/gpu={gpus}" if gpus else f"/nodes=1/core={cores}"
        arguments["resource_spec"] = self._site("resource-spec", unasked=True) or chunk

    def _walltime(self) -> str | None:
        """Return the walltime as the queue writes it: Slurm alone knows days, LSF no seconds."""
        walltime_s = self._walltime_s()
        if walltime_s is None or self.name == "slurm":
            return self._settings["walltime"]  # type: ignore[no-any-return]
        minutes, seconds = divmod(walltime_s, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours:02}:{minutes:02}" if self.name == "lsf" else f"{hours:02}:{minutes:02}:{seconds:02}"

    def _environment(self) -> Iterator[str]:
        """Yield what torch's and NCCL's sockets go by."""
        if interface := self._settings["interface"]:
            for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
                yield f"export {variable}={shlex.quote(interface)}"

    def _check_words(self) -> Iterator[Problem]:
        asked = self._settings
        numbers = {name: asked[name] for name in ("nodes", "cpus_per_node", "memory_gib_per_node")}
        for name, value in numbers.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
                yield Problem(what=f"{name}={value!r} is not a number above 0.", fix=f"{name}=1")
        for name in ("gpus_per_node", "max_restarts", "grace_s"):
            if isinstance(asked[name], bool) or not isinstance(asked[name], int) or asked[name] < 0:
                yield Problem(what=f"{name}={asked[name]!r} is not a whole number from 0 on.", fix=f"{name}=0")
        if asked["walltime"] is None and self.name != "htcondor":
            yield Problem(
                what=f"rlnb.{self.name}() says no walltime, and there is no good guess.",
                fix='walltime="08:00:00". What takes longer goes on by itself in a further job.',
            )
        elif asked["walltime"] is not None and self._walltime_s() is None:
            yield Problem(what=f"walltime={asked['walltime']!r} is not a time.", fix='walltime="2-08:00:00"')
        elif self.limit_s is not None and self.limit_s <= 0:
            yield Problem(
                what=f"walltime={asked['walltime']!r}, of which the last {asked['grace_s']} s are for stopping.",
                fix='walltime="00:30:00"',
            )
        named = ("partition", "account", "interface", "host_interface", "python", "container")
        words = {name: asked[name] for name in named}
        words |= {f"directives[{n}]": word for n, word in enumerate(asked["directives"])}
        for name, word in words.items():
            if word is not None and (not isinstance(word, str) or not word or not word.isprintable()):
                yield Problem(what=f"{name}={word!r} is not a line of text, and would become one of the job's.")
        if asked["container_runtime"] not in RUNTIMES:
            known = ", ".join(RUNTIMES)
            yield Problem(what=f"container_runtime={asked['container_runtime']!r} is none of {known}.")
        if asked["dashboard"] and importlib.util.find_spec("bokeh") is None:
            yield Problem(what="Dask's dashboard needs bokeh, which is not installed.", fix="pip install bokeh")
        for name in ("partition", "account", "interface", "host_interface"):
            if isinstance(asked[name], str) and re.search(r"[\s;&|$`\"'\\<>()]", asked[name]):
                yield Problem(what=f"{name}={asked[name]!r} holds characters that no such name has.")

    def _check_queue(self) -> Iterator[Problem]:
        command = shlex.split(job_class(self.name).submit_command)[0]
        if shutil.which(command) is None:
            yield Problem(
                what=f"There is no {command} on this machine, so nothing can be given to a queue from here.",
                fix="Run the notebook on a login node of the cluster.",
            )
        elif self.name == "slurm" and (refused := _refused(self.job_script())):
            yield Problem(
                what=f"Slurm would refuse this job: {refused}",
                fix="`sinfo` lists partitions and their limits. If it fails too, SLURM_CONF names no Slurm that runs.",
            )

    def __repr__(self) -> str:
        said = ", ".join(
            f"{name}={value!r}"
            for name, value in self._settings.items()
            if value and (name, value) != ("container_runtime", "apptainer")
        )
        return f"rlnb.{self.name}({said})"


def _refused(script: str) -> str:
    """Return why Slurm would refuse a job; nothing where it would take it."""
    try:
        done = subprocess.run(
            ["sbatch", "--test-only"], input=script, capture_output=True, text=True, timeout=30, check=False
        )
    except subprocess.TimeoutExpired:
        return "its controller does not answer within 30 s (sbatch --test-only)"
    return done.stderr.strip().removeprefix("allocation failure: ") if done.returncode else ""


def job_class(name: str) -> Any:
    """Return dask-jobqueue's class of a queue's jobs."""
    return getattr(importlib.import_module(f"dask_jobqueue.{name}"), f"{CLASSES[name]}Job")


def cluster_class(name: str) -> Any:
    """Return dask-jobqueue's class of a queue's clusters."""
    import dask_jobqueue

    return getattr(dask_jobqueue, f"{CLASSES[name]}Cluster")


slurm = functools.partial(QueueLauncher, "slurm")
pbs = functools.partial(QueueLauncher, "pbs")
sge = functools.partial(QueueLauncher, "sge")
lsf = functools.partial(QueueLauncher, "lsf")
htcondor = functools.partial(QueueLauncher, "htcondor")
oar = functools.partial(QueueLauncher, "oar")
