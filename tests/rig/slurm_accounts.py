"""The accounts of a Slurm of the test rig: slurmdbd, and a MariaDB for it alone.

Slurm reads accounts, users and the limits of a QOS from slurmdbd. The database listens only on a socket, in a folder
that only its owner can enter. When run as root, the rig installs the Debian packages mariadb-server and slurmdbd.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import debian

PROGRAMS = {"slurmdbd": "slurmdbd", "mariadbd": "mariadb-server", "mariadb-install-db": "mariadb-server"}
"""Required programs, and the Debian package of each."""
UP_S, DOWN_S = 60.0, 20.0
"""Seconds that each daemon may take to start and to stop."""
MEMORY = Path("/dev/shm")
"""A file system in memory. On a disk, the set-up of a database waits for every write."""
DATABASE = ("--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0", "--skip-networking")
CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=accounts
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd
"""
SLURM_CONF = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/run/munge.socket
AccountingStorageEnforce=associations,limits,qos
"""


class Accounts:
    """The accounting daemon of a Slurm, and its database.

    Args:
        folder: Folder of the Slurm.
        port: Port of the accounting daemon.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._database: Path | None = None

    @property
    def conf(self) -> str:
        """Lines of slurm.conf with which the controller refuses what the accounts do not allow."""
        return SLURM_CONF.format(folder=self._folder, port=self._port)

    def up(self) -> None:
        """Start the database and the accounting daemon, which needs munge.

        Raises:
            RuntimeError: A daemon did not start.
        """
        self._database = Path(tempfile.mkdtemp(prefix="rlnb-accounts-", dir=MEMORY if MEMORY.is_dir() else None))
        user, sock = getpass.getuser(), self._database / "socket"
        options = ["--no-defaults", f"--datadir={self._database}/data", f"--user={user}", *DATABASE]
        install = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        subprocess.run(
            ["mariadb-install-db", *options, *install], cwd=self._database, check=True, stdout=subprocess.DEVNULL
        )
        self._start("mariadbd", *options, f"--socket={sock}", f"--pid-file={self._database}/pid")
        self._wait(sock.exists)
        conf, host = self._folder / "slurmdbd.conf", socket.gethostname().split(".")[0]
        conf.write_text(CONF.format(folder=self._folder, host=host, port=self._port, user=user))
        conf.chmod(0o600)
        self._start("slurmdbd", "-D", env={**os.environ, "MYSQL_UNIX_PORT": str(sock)})
        self._wait(self._answers)

    def down(self) -> None:
        """Stop both daemons, and delete the database."""
        for daemon in reversed(self._daemons):
            debian.end(daemon.pid, lambda daemon=daemon: daemon.poll() is None)
        self._daemons.clear()
        if self._database:
            shutil.rmtree(self._database, ignore_errors=True)

    def _start(self, name: str, *argv: str, env: Mapping[str, str] | None = None) -> None:
        with (self._folder / "log" / f"{name}.log").open("ab") as log:
            argv = (debian.program(name), *argv)
            self._daemons.append(subprocess.Popen(argv, stdout=log, stderr=log, env=env, start_new_session=True))

    def _wait(self, fact: Callable[[], bool]) -> None:
        """Wait until the daemon that was started last is ready."""
        deadline = time.monotonic() + UP_S
        while not fact():
            if self._daemons[-1].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self._daemons[-1].args!r} did not start. Look into {self._folder}/log.")
            time.sleep(0.1)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0


def sacctmgr(*argv: str) -> None:
    """Change accounts, users or limits.

    Raises:
        RuntimeError: The change is not possible.
    """
    done = subprocess.run(["sacctmgr", "--immediate", *argv], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"sacctmgr {' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
