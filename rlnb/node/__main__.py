"""``python -m rlnb.node``: the node agent, one per node for every launcher.

The agent runs one command. It keeps the log, the heartbeat, the place in the queue and the walltime, checks whether the
job was cancelled, writes the result, and leaves no process of the command behind. It imports neither
torch nor the simulator, and has one thread, but for those that tell a webhook of an alert.

``python -m rlnb.node JOB_DIR`` runs the command of that job. With ``--node K --master HOST:PORT`` it is the agent of
one of several nodes. With ``--lifeline`` it ends when its standard input closes; the process at the other end writes
the reason. With ``--revocable`` a signal means that a queue takes the node away, so the training may go on elsewhere.
When the kernel hands over a job, the agent detaches from the kernel and becomes the agent of that job.
``python -m rlnb.node --serve JOB_DIR PYTHON`` serves warm simulators in a job, to a kernel on another machine.
``python -m rlnb.node --sidecar ARGV`` runs a command until the kernel is gone, however it ended.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rlnb.node.child import adopt_orphans, spawn
from rlnb.node.peers import Member
from rlnb.node.simulator import keep_simulator
from rlnb.node.supervisor import Agent, run_sidecar
from rlnb.records.layout import JobDir
from rlnb.spec import Command
from rlnb.storage import files
from rlnb.storage.serial import from_json


def run_job(argv: Sequence[str]) -> int:
    """Run the command in a job's ``command.json``."""
    parser = argparse.ArgumentParser(prog="rlnb.node")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--master", default="")
    parser.add_argument("--lifeline", action="store_true")
    parser.add_argument("--revocable", action="store_true")
    parser.add_argument("--deadline", type=float)
    parser.add_argument("--hang-after", type=float)
    args = parser.parse_args(argv)
    job = JobDir(args.folder)
    files.restrict_umask(job.path)
    command = from_json(Command, files.read_own_json(job.command))
    member = Member(args.node, command.nodes, args.master)
    agent = Agent(
        job,
        command,
        member,
        lifeline=args.lifeline,
        deadline=args.deadline,
        hang_after_s=args.hang_after,
        revocable=args.revocable,
    )
    return agent.run(lambda command: spawn(command, job.log(member.node)))


def main(argv: Sequence[str]) -> int:
    files.restrict_umask()
    adopt_orphans()
    if argv[:1] in (["--sidecar"], ["--beside"]):  # the second is that of a kernel which began before an update
        return run_sidecar(argv[1:])
    if argv[:1] == ["--warm"]:
        return keep_simulator(Path(argv[1]), argv[2:])
    if argv[:1] == ["--serve"]:
        from rlnb.node.remote_job import serve  # asyncio and ssl, which an agent does not need

        return serve(argv[1:])
    return run_job(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
