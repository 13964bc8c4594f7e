"""A real Slurm with several nodes on this machine: no systemd, no cgroups, and accounts only where a test needs them.

    python tests/rig/slurm.py up       # or: make slurm-up
    python tests/rig/slurm.py down

Every node is a ``slurmd`` on this host under its own name. The nodes share the host's cores, but the configuration
gives each node a fixed number of CPUs. When run as root, the script installs the Debian packages slurmctld, slurmd,
slurm-client and munge.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import debian
import psutil
import slurm_accounts

PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
"""Required programs, and the Debian package of each."""
CPUS, MEMORY_MB = 4, 8000
"""CPUs and memory of each node in the configuration, whatever the host has."""
GPU_CPUS, GPU_MEMORY_MB = 16, 64_000
"""The same for nodes with GPUs."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
"""Devices in place of GPUs. Slurm counts them, and CUDA does not know them."""
UP_S, DOWN_S = 60.0, 10.0
"""Seconds that Slurm may take to start and to stop."""
CONF = """
ClusterName=rlnb
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits until its credential expires, which takes two minutes by default.
AuthInfo=socket={folder}/run/munge.socket,cred_expire=10
SlurmctldPort={port}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=10000
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
InactiveLimit=0
KillWait=3
MinJobAge=300
MessageTimeout=10
Waittime=0
JobRequeue=1
UnkillableStepTimeout=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PropagateResourceLimits=NONE
"""


class Slurm:
    """A Slurm on this machine.

    Args:
        folder: Folder for state, logs and sockets. Its path must be short: a socket's path is limited to 107 bytes.
        nodes: Number of nodes.
        port: Port of the controller. The nodes take the ports from ``port + 1000`` on.
        gpus: Number of GPUs of each node, which are other devices; at most four.
        prolog: Script that runs on each node before a job starts; a site's check of the node's health is one. It knows
            the node from SLURMD_NODENAME.
        accounts: Whether jobs need an account, by a daemon that takes the port after those of the nodes. Without it,
            Slurm accepts every account and QOS unread.
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 4,
        port: int = 6817,
        gpus: int = 0,
        *,
        prolog: Path | None = None,
        accounts: bool = False,
    ) -> None:
        self.folder, self.nodes, self._port, self._gpus = folder, nodes, port, gpus
        self._prolog = prolog
        self._accounts = slurm_accounts.Accounts(folder, port + 1000 + nodes) if accounts else None

    @property
    def conf(self) -> Path:
        """Value of ``SLURM_CONF`` with which ``sbatch`` and other commands use this Slurm."""
        return self.folder / "slurm.conf"

    def up(self) -> None:
        """Start every daemon that is not running, and wait until every node can run jobs.

        Raises:
            RuntimeError: Slurm did not come up. The message shows the end of its logs.
        """
        for name in ("run", "state", "log", "munge"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "munge").chmod(0o700)
        for folder in (self.folder, self.folder / "run"):
            folder.chmod(0o711)
        self.conf.write_text(self._conf())
        (self.folder / "gres.conf").write_text("".join(f"Name=gpu File={device}\n" for device in DEVICES[: self._gpus]))
        os.environ["SLURM_CONF"] = str(self.conf)
        self._start_munge()
        if self._accounts:
            self._accounts.up()
        self.start_controller()
        for number in range(self.nodes):
            self.start_node(number)
        deadline = time.monotonic() + UP_S
        while self.idle() < self.nodes:
            if time.monotonic() > deadline:
                raise RuntimeError(f"Slurm did not come up in {UP_S:.0f} s.\n{self.logs()}")
            time.sleep(0.1)

    def start_controller(self) -> None:
        """Start the controller, which answers sbatch and squeue, unless it is running."""
        if not self._alive("slurmctld"):
            _run(debian.program("slurmctld"), "-f", str(self.conf))

    def stop_controller(self) -> None:
        """Stop the controller. Jobs on the nodes continue."""
        self._kill("slurmctld", signal.SIGTERM)

    def start_node(self, number: int) -> None:
        """Start a node's daemon unless it is running."""
        if not self._alive(f"slurmd.node{number}"):
            (self.folder / f"spool.node{number}").mkdir(exist_ok=True)
            _run(debian.program("slurmd"), "-f", str(self.conf), "-N", f"node{number}")

    def kill_node(self, number: int) -> None:
        """Kill a node's daemon and all its processes, as a power failure would."""
        self._kill(f"slurmd.node{number}", signal.SIGKILL)
        for process in self.processes(number):
            lost = [process]
            with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended with the one before
                step = process.parent()
                lost += [step] if step and step.name() == "slurmstepd" else []
            for one in lost:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()

    def processes(self, number: int) -> list[psutil.Process]:
        """Return the processes of jobs on a node."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("SLURMD_NODENAME") == f"node{number}":
                    found.append(process)
        return found

    def idle(self) -> int:
        """Return the number of nodes that can run jobs."""
        done = subprocess.run(
            ["sinfo", "-h", "-N", "-p", "main", "-t", "idle,alloc,mix", "-o", "%N"],
            capture_output=True,
            text=True,
            check=False,
        )
        return len(set(done.stdout.split()))

    def jobs(self) -> list[str]:
        """Return the ids of all jobs in the queue: waiting, running or ending."""
        done = subprocess.run(["squeue", "-h", "-o", "%A"], capture_output=True, text=True, check=False)
        return sorted(set(done.stdout.split()))

    def down(self) -> None:
        """Cancel every job and stop all daemons."""
        os.environ["SLURM_CONF"] = str(self.conf)
        if self._alive("slurmctld") and (jobs := self.jobs()):
            subprocess.run(["scancel", "-f", *jobs], check=False)
            deadline = time.monotonic() + DOWN_S
            while self.jobs() and time.monotonic() < deadline:
                time.sleep(0.1)
        for pid in sorted((self.folder / "run").glob("*.pid"), reverse=True):  # slurmd, slurmctld, munged
            self._kill(pid.stem, signal.SIGTERM)
        if self._accounts:
            self._accounts.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def logs(self) -> str:
        """Return the end of every log."""
        return "\n".join(
            f"== {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:])
            for path in sorted((self.folder / "log").glob("*.log"))
        )

    def _conf(self) -> str:
        host = socket.gethostname().split(".")[0]
        lines = [CONF.format(host=host, user=getpass.getuser(), folder=self.folder, port=self._port)]
        lines.append(self._accounts.conf if self._accounts else "AccountingStorageType=accounting_storage/none")
        lines += ["GresTypes=gpu"] if self._gpus else []
        lines += [f"Prolog={self._prolog}", "PrologFlags=Alloc"] if self._prolog else []
        size = f"CPUs={CPUS} RealMemory={MEMORY_MB}"
        if self._gpus:
            size = f"CPUs={GPU_CPUS} RealMemory={GPU_MEMORY_MB} Gres=gpu:{self._gpus}"
        lines += [
            f"NodeName=node{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={self._port + 1000 + n} {size} State=UNKNOWN"
            for n in range(self.nodes)
        ]
        lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1")
        lines.append("PartitionName=first Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF\n")
        return "\n".join(lines)

    def _start_munge(self) -> None:
        key = self.folder / "munge" / "munge.key"
        if not key.exists():
            key.write_bytes(secrets.token_bytes(1024))
            key.chmod(0o400)
        if not self._alive("munged"):
            paths = {"socket": "run/munge.socket", "pid-file": "run/munged.pid", "log-file": "log/munged.log"}
            paths |= {"key-file": "munge/munge.key", "seed-file": "munge/seed"}
            _run(
                debian.program("munged"), "--force", *(f"--{name}={self.folder / path}" for name, path in paths.items())
            )

    def _pid(self, daemon: str) -> int | None:
        try:
            return int((self.folder / "run" / f"{daemon}.pid").read_text())
        except (OSError, ValueError):
            return None

    def _alive(self, daemon: str) -> bool:
        return _lives(self._pid(daemon))

    def _kill(self, daemon: str, number: signal.Signals) -> None:
        pid = self._pid(daemon)  # a slurmd deletes its file before it ends, and may hang in between
        debian.end(pid, lambda: _lives(pid), number)


def missing(*, accounts: bool = False) -> list[str]:
    """Return the required Debian packages that are missing, after an attempt to install them as root."""
    return debian.missing({**PROGRAMS, **slurm_accounts.PROGRAMS} if accounts else PROGRAMS)


def by_hand() -> Slurm:
    """Return the Slurm that ``make slurm-up`` starts."""
    return Slurm(Path(tempfile.gettempdir()) / f"rlnb-slurm-{os.getuid()}")


def _lives(pid: int | None) -> bool:
    try:
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("up", "down"))
    what, slurm = parser.parse_args().what, by_hand()
    if lacking := missing():
        sys.exit(f"Slurm is not installed. Use apt-get install {' '.join(lacking)}")
    if what == "up":
        slurm.up()
        print(f"{slurm.nodes} nodes are up. For this shell: export SLURM_CONF={slurm.conf}")
    else:
        slurm.down()


if __name__ == "__main__":
    main()
