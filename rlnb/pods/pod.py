"""One pod of a run, from its first training to the last one that continues it.

The cluster starts a pod again after it was killed. The second start finds the claim of the first in the job's folder,
and that its heartbeat stands still, so the first one is dead. The second start ends the job as interrupted. The agents
of the other pods then end their ranks and wait. The first node adds the job that continues the training from the last
checkpoint, and all pods take their places in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.launch.command import worker_command
from rlnb.node.child import spawn
from rlnb.node.peers import JOIN_S, Member
from rlnb.node.supervisor import Agent
from rlnb.pods.member import check_master, member_of, node_of
from rlnb.records import incidents
from rlnb.records.incidents import interruptions
from rlnb.records.layout import JobDir, RunDir, run_dir_of
from rlnb.spec import Command, Manifest, Result
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json

DEAD_S = 10.0
"""Seconds for which the heartbeat of an earlier start has to stand still. An agent writes one each second."""
POLL_S = 0.25
BEAT_S = 1.0


def newest_training(run_dir: Path) -> JobDir:
    """Return the folder of a run's newest training.

    Raises:
        RlnbError: The run has no training.
    """
    trainings = [job for job in RunDir(run_dir).jobs() if job.kind == "train" and job.counts()]
    if not trainings:
        raise RlnbError(f"{run_dir} has no training to run. Use the folder of a run that is mounted here.")
    return trainings[-1]


def start(run_dir: Path, environ: Mapping[str, str]) -> int:
    """Take this pod's place in the newest training of a run, and in those that continue it; return the exit status.

    A reason for which the pod cannot do so is printed and recorded in the job's folder, where the notebook sees it. It
    is the job's result if the first node gives it before it has started.

    Args:
        run_dir: Folder of the run.
        environ: The environment, with this pod's rank.

    Raises:
        RlnbError: The folder is not that of a run with a training.
    """
    manifest = from_json(Manifest, files.read_json(RunDir(run_dir).manifest) or {}, ignore_unknown=True)
    pod = Pod(manifest, newest_training(run_dir))
    resources = manifest.resources
    try:
        gpus = 0 if resources.device == "cpu" else resources.nproc_per_node
        return pod.run(member_of(run_dir, resources.nodes, gpus, environ))
    except RlnbError as exc:
        sys.stderr.write(f"rlnb.pods: {exc}\n")
        _refuse(pod.job, str(exc), node_of(resources.nodes, environ))
        return 1


def _refuse(job: JobDir, error: str, node: int | None) -> None:
    """Record the reason of a pod. One of a node that has started is a further pod, and does not speak for that node."""
    if node is not None and files.there(job.running(node)):
        node = None
    if node == 0:
        files.write_once(job.result, Result(outcome="failed", error=error, ended=files.now()), job.reserve)
    else:
        incidents.write_refusal(job, error, node)


class Pod:
    """This pod of a run.

    Args:
        manifest: Manifest of the run.
        job: The training to run.
    """

    def __init__(self, manifest: Manifest, job: JobDir) -> None:
        self.job = job
        """The training that this pod runs now."""
        self._manifest = manifest
        self._agent: Agent | None = None
        self._beat = 0.0

    def run(self, member: Member) -> int:
        """Run the training, and the ones that continue it after interruptions; return the exit status.

        The status is 0 if the run has ended as its user wished, so that the cluster does not start the pod again.

        Raises:
            RlnbError: This pod cannot take its place.
        """
        while True:
            if not files.there(self.job.result):
                self._run(member)
            following = self._following(member)
            if following is None:
                return self._status()
            self.job = following

    def _run(self, member: Member) -> None:
        """Run the agent of this node to the end of the job, or end the job if an earlier start of this pod is dead."""
        if files.there(self.job.running(member.node)):
            return self._end_of_earlier(member)
        check_master(member, lambda: self._signalled() or self._over())
        if self._signalled():  # by now the handler of the earlier job's agent has heard it
            return
        self._agent = Agent(self.job, self._command(), member, revocable=True)
        self._agent.run(lambda command: spawn(command, self.job.log(member.node)))

    def _command(self) -> Command:
        """Return the command of the job. Its interpreter is that of this pod, unless the user has named another."""
        command = from_json(Command, files.read_own_json(self.job.command))
        plain = worker_command(self._manifest, "train", run_dir_of(self.job.path).path, self.job.path)
        is_plain = self._manifest.python is None and command.argv[1:] == plain.argv[1:]
        return dataclasses.replace(command, argv=plain.argv) if is_plain else command

    def _end_of_earlier(self, member: Member) -> None:
        """End the job as interrupted, since an earlier start of this pod was killed.

        Raises:
            RlnbError: The earlier start lives.
        """
        claim = files.read_json(self.job.running(member.node)) or {}
        host = claim.get("host", "another host")
        if self._beats(member.node):
            raise RlnbError(
                f"{self.job.path} was started on {host} at {claim.get('time')}, runs there as node {member.node}, and "
                "cannot be started twice. Give each pod a RANK of its own."
            )
        error = f"node {member.node} ({host}) was killed, and its cluster has started it again"
        log = files.tail(self.job.log(member.node))
        values = {"interrupted": True, "node": member.node}
        result = Result(outcome="failed", error=error, detail=log, ended=files.now(), values=values)
        files.write_once(self.job.result, result, self.job.reserve)

    def _beats(self, node: int) -> bool:
        """Return whether the agent of a node lives: whether its heartbeat changes before the job has a result."""
        first, deadline = _time_of(self.job.alive(node)), time.monotonic() + DEAD_S
        while time.monotonic() < deadline and not self._over():
            time.sleep(POLL_S)
            if _time_of(self.job.alive(node)) != first:
                return True
        return False

    def _over(self) -> bool:
        return files.there(self.job.result) or files.there(self.job.cancel)

    def _following(self, member: Member) -> JobDir | None:
        """Return the job in which the training goes on; None if it does not.

        Raises:
            RlnbError: The training goes on, but without this pod.
        """
        if not self._goes_on():
            return None
        if member.node == 0:
            return self._continue()
        deadline = time.monotonic() + JOIN_S
        while time.monotonic() < deadline:
            if following := self.job.sibling(self.job.successor_name()):
                return following
            if self._signalled() or files.there(self.job.cancel) or files.there(self.job.refusal("node0")):
                return None
            self._keep_heartbeat(member.node)
            time.sleep(POLL_S)
        raise RlnbError(f"Node 0 did not come back within {JOIN_S:.0f} s after an interruption. Start its pod again.")

    def _goes_on(self) -> bool:
        """Return whether the job was interrupted, and its run may go on."""
        if self._signalled():
            return False
        if self.job.successor_name():
            return True
        result = self._result()
        if result is None or not result.interrupted or files.there(self.job.cancel):
            return False
        # A job that a node never joined ended because that node is missing. It would be missing again.
        if len(self.job.hosts()) < self._manifest.resources.nodes or self._manifest.script:
            return False
        return self._interruptions() <= self._most_restarts

    def _interruptions(self) -> int:
        """Return how many trainings of the run its cluster has interrupted."""
        trainings = (JobDir(job.path) for job in run_dir_of(self.job.path).jobs() if job.kind == "train")
        return interruptions(_result_of(job) for job in trainings if job.counts())

    @property
    def _most_restarts(self) -> int:
        return int(str(self._manifest.launcher_settings.get("max_restarts", 3)))

    def _continue(self) -> JobDir | None:
        """Add the job that continues the training, as its first node."""
        from rlnb.jobs.detached_job import next_job  # imports much that a pod needs only now
        from rlnb.records.record import RunRecord

        if following := self.job.sibling(self.job.successor_name()):
            return following
        self._keep_heartbeat(0)
        reason = "No iterations are left."
        try:
            record = RunRecord(run_dir_of(self.job.path).path)
            following = next_job(self.job, record, restart=self._interruptions(), max_restarts=self._most_restarts)
        except RlnbError as exc:
            following, reason = None, str(exc)
        if following is None:
            sys.stderr.write(f"rlnb.pods: The training does not go on: {reason}\n")
            incidents.write_refusal(self.job, reason, 0)  # the other pods wait for this node
        return following

    def _keep_heartbeat(self, node: int) -> None:
        """Show that this pod waits to go on; see :meth:`rlnb.launch.injected.InjectedLauncher.alive`."""
        if time.monotonic() - self._beat > BEAT_S:
            self._beat = time.monotonic()
            with contextlib.suppress(OSError):  # a full disk must not end the wait
                entries.touch(self.job.alive(node))

    def _signalled(self) -> bool:
        return self._agent is not None and self._agent.signalled

    def _result(self) -> Result | None:
        return _result_of(self.job)

    def _status(self) -> int:
        """Say how the run has ended if this pod came too late, and return the exit status."""
        result = self._result()
        outcome = result.outcome if result else "failed"
        if self._agent is None:
            run = run_dir_of(self.job.path).path.name
            fix = f" To continue it: rlnb.get_run({run!r}).resume()" if outcome != "completed" else ""
            sys.stderr.write(f"rlnb.pods: {self.job.path} has ended ({outcome}) and cannot be started twice.{fix}\n")
        return int(outcome == "failed" and not files.there(self.job.cancel))


def _result_of(job: JobDir) -> Result | None:
    data = files.read_json(job.result)
    return None if data is None else from_json(Result, data, ignore_unknown=True)


def _time_of(path: Path) -> int:
    """Return when a file was written, in nanoseconds; 0 without the file. NFS is exact only once the file is open."""
    try:
        with files.open_regular(path) as file:
            return os.fstat(file.fileno()).st_mtime_ns
    except (OSError, RlnbError):
        return 0
