"""A real OAR with one node of four cores on this machine: no systemd and no cgroups.

    python tests/rig/oar.py up
    python tests/rig/oar.py down

OAR reads its configuration from fixed paths, so there is one OAR on a machine. The rig needs root, edits
``/etc/oar/oar.conf`` and ``~oar/.batch_job_bashrc``, and restores them afterwards. It installs the Debian packages
oar-server, oar-server-pgsql, oar-node, oar-user and postgresql. The database is one of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import debian
import psutil

PROGRAMS = {
    "Almighty": "oar-server",
    "oarnodechecklist": "oar-node",
    "oarsub": "oar-user",
    "sshd": "openssh-server",
    "psql": "oar-server-pgsql",
    "pg_ctlcluster": "postgresql",
}
"""Required programs, and the Debian package of each."""
CONF, SHELL = Path("/etc/oar/oar.conf"), Path("/var/lib/oar/.batch_job_bashrc")
SHELL_LINE = "unset BASH_ENV\n"
"""The file that OAR sets as BASH_ENV of each job. Debian's sources ``~/.bashrc``, which starts bash without end if it
calls a program that is a script of bash."""
LOCK = Path("/run/rlnb-oar.lock")
PORT, CORES = 15432, 4
UP_S, DOWN_S = 30.0, 10.0
"""Seconds that OAR may take to start and to stop."""
SETTINGS = {
    "DB_PORT": str(PORT),
    "DB_BASE_PASSWD": "oar",
    "DB_BASE_PASSWD_RO": "oar_ro",
    "SCHEDULER_JOB_SECURITY_TIME": "1",
    "JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD": "",  # no cgroups
}
ROOT = "update admission_rules set enabled = 'NO' where rule like '%root and oar users are not allowed%'"
"""Lets root submit jobs."""


class Oar:
    """The OAR of this machine.

    Args:
        folder: Folder for the database and the logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = LOCK.open("w")

    def up(self) -> None:
        """Start the database, the node's sshd and the server, and wait until the cores can run jobs.

        Raises:
            RuntimeError: OAR did not come up.
        """
        fcntl.flock(self._lock, fcntl.LOCK_EX)  # until this process ends, or until down()
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in (CONF, SHELL):
            (self.folder / path.name).write_text(path.read_text())
        CONF.write_text(_edited(CONF.read_text(), SETTINGS))
        SHELL.write_text(SHELL_LINE)
        self._start_database()
        Path("/run/sshd").mkdir(exist_ok=True)
        _run(debian.program("sshd"), "-f", "/etc/oar/sshd_config", "-o", f"PidFile={self.folder}/sshd.pid")
        self._start_server()
        _run("oarproperty", "-a", "core")
        for core in range(CORES):
            _run("oarnodesetting", "-a", "-h", "127.0.0.1", "-p", f"core={core + 1}")
        deadline = time.monotonic() + UP_S
        while _run("oarnodes", "-s").count("Alive") < CORES:
            if time.monotonic() > deadline:
                raise RuntimeError(f"OAR did not come up in {UP_S:.0f} s.")
            time.sleep(0.2)

    def jobs(self) -> list[str]:
        """Return the ids of all jobs in the queue: waiting, running or ending."""
        return re.findall(r"^(\d+) ", _run("oarstat"), re.MULTILINE)

    def down(self) -> None:
        """Delete every job, stop all daemons, and restore the configuration."""
        with contextlib.suppress(RuntimeError):
            if jobs := self.jobs():
                _run("oardel", *jobs)
                deadline = time.monotonic() + DOWN_S
                while self.jobs() and time.monotonic() < deadline:
                    time.sleep(0.2)
        for name, number in (("server", signal.SIGTERM), ("sshd", signal.SIGTERM), ("database", signal.SIGINT)):
            pid = self._pid(name)
            debian.end(pid, lambda pid=pid: _alive(pid), number)
        for path in (CONF, SHELL):
            if (before := self.folder / path.name).exists():
                path.write_text(before.read_text())
        shutil.rmtree(self.folder, ignore_errors=True)
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _start_database(self) -> None:
        (program,) = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))[-1:]
        data = self.folder / "database"
        data.mkdir()
        shutil.chown(data, "postgres", "postgres")
        self.folder.chmod(0o711)
        options = f"-p {PORT} -k {data} -c fsync=off -c listen_addresses=127.0.0.1"
        as_user = ("runuser", "-u", "postgres", "--", str(program), "-D", f"{data}/data")
        _run(*as_user, "initdb", "-o", "-A trust")
        _run(*as_user, "-w", "-l", f"{data}/log", "-o", options, "start")
        (self.folder / "database.pid").write_text((data / "data" / "postmaster.pid").read_text().splitlines()[0])
        admin = ("--db-admin-user=postgres", "--db-admin-pass=postgres", "--db-host=127.0.0.1", f"--db-port={PORT}")
        _run("oar-database", "--create", *admin, "-y")
        _run("psql", "-q", "-h", "127.0.0.1", "-p", str(PORT), "-U", "postgres", "oar", "-c", ROOT)

    def _start_server(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            server = subprocess.Popen([debian.program("Almighty")], stdout=log, stderr=log, start_new_session=True)
        (self.folder / "server.pid").write_text(str(server.pid))

    def _pid(self, daemon: str) -> int | None:
        path = self.folder / f"{daemon}.pid"
        return int(path.read_text()) if path.exists() else None


def missing() -> list[str]:
    """Return what is missing: root, or Debian packages after an attempt to install them."""
    return debian.missing(PROGRAMS) if os.geteuid() == 0 else ["root"]


def by_hand() -> Oar:
    """Return the OAR that this script starts."""
    return Oar(Path(tempfile.gettempdir()) / "rlnb-oar")


def _edited(text: str, values: Mapping[str, str]) -> str:
    """Return a configuration with other values; an empty value leaves the option out."""
    for name, value in values.items():
        line = f'{name}="{value}"' if value else f"# {name}"
        text = re.sub(rf"^{name}=.*$", line, text, flags=re.MULTILINE)
    return text


def _alive(pid: int | None) -> bool:
    try:
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _run(*argv: str) -> str:
    program = debian.program(argv[0]) or argv[0]
    # A daemon that keeps the pipe of its output open would never let its starter return.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run([program, *argv[1:]], stdout=output, stderr=output, cwd="/", check=False)
        output.seek(0)
        text = output.read()
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{text}")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("up", "down"))
    what = parser.parse_args().what
    if lacking := missing():
        sys.exit(f"OAR cannot run here. It needs {' '.join(lacking)}")
    by_hand().up() if what == "up" else by_hand().down()


if __name__ == "__main__":
    main()
