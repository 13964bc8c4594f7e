"""``python -m rlnb.node``: the node agent, one per node for every launcher.

It runs one command and answers for it: log, heartbeat, queue, cancel, walltime, result, and that no
process of it is left when it ends. Single-threaded, and free of torch and of the simulator.

``python -m rlnb.node JOB_DIR`` runs the command of that job; with ``--node K --master HOST:PORT`` it is
the agent of one of several nodes. With ``--lifeline`` it ends when its standard input does, and leaves it
to who held that to say why. ``python -m rlnb.node --injected RUN_DIR`` finds node and master in the
environment, where a cluster's own operator has put them. ``python -m rlnb.node --warm LOG ARGV``
keeps a warm worker for a kernel and passes its requests on; when the kernel hands it a job, the
agent lets the kernel go and becomes that job's agent. ``python -m rlnb.node --beside ARGV`` runs a
command until the kernel is gone, however it went.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rlnb.node.agent import Agent
from rlnb.node.child import adopt_orphans, spawn
from rlnb.node.peers import Member, injected, newest_training
from rlnb.node.server import keep_beside
from rlnb.node.simulator import keep_simulator
from rlnb.records.layout import JobDir, run_dir_of
from rlnb.spec import Command, Manifest
from rlnb.storage import files
from rlnb.storage.serial import from_json


def run_job(argv: Sequence[str]) -> int:
    """Run the command that was written for a job."""
    parser = argparse.ArgumentParser(prog="rlnb.node")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--node", type=int, default=0)
    parser.add_argument("--master", default="")
    parser.add_argument("--injected", action="store_true")
    parser.add_argument("--lifeline", action="store_true")
    parser.add_argument("--deadline", type=float)
    parser.add_argument("--hang-after", type=float)
    asked = parser.parse_args(argv)
    job = newest_training(asked.folder) if asked.injected else JobDir(asked.folder)
    command = from_json(Command, files.read_json(job.command) or {})
    if asked.injected:
        asked_for = from_json(Manifest, files.read_json(run_dir_of(job.path).manifest) or {}).resources
        gpus = 0 if asked_for.device == "cpu" else asked_for.nproc_per_node
        member = injected(asked.folder, command.nodes, gpus, os.environ)
    else:
        member = Member(asked.node, command.nodes, asked.master)
    agent = Agent(job, command, member, lifeline=asked.lifeline, deadline=asked.deadline, hang_after_s=asked.hang_after)
    return agent.run(lambda command: spawn(command, job.log(member.node)))


def main(argv: Sequence[str]) -> int:
    adopt_orphans()
    if argv[:1] == ["--beside"]:
        return keep_beside(argv[1:])
    if argv[:1] == ["--warm"]:
        return keep_simulator(Path(argv[1]), argv[2:])
    return run_job(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
