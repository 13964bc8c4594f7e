"""A real SSH server on this machine, with another user's account: a machine that shares no folder with the tests.

The server listens on loopback only, on a port of its own, with its own host key. The account is made by ``useradd``,
has a home of its own, and an interpreter that reads the packages of the one that runs the tests. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import debian
import psutil

PROGRAMS = {"sshd": "openssh-server", "ssh": "openssh-client", "useradd": "passwd"}
"""Required programs, and the Debian package of each."""
UP_S = 20.0
CONF = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
PidFile {folder}/sshd.pid
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
AllowUsers {user}
# The interpreter is mounted in a second place, where it does not look for its library.
SetEnv LD_LIBRARY_PATH={folder}/python/lib
"""
CLIENT = """
Host far
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {folder}/key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
"""


def missing() -> list[str]:
    """Return the packages that are missing; also what else stands against an account for the tests."""
    return ["root"] if os.geteuid() else debian.missing(PROGRAMS)


class Machine:
    """Another user's account on this machine, behind an SSH server.

    Args:
        folder: Folder for keys and configuration.
        user: Name of the account, which must not exist.
    """

    def __init__(self, folder: Path, user: str) -> None:
        self.folder, self.user = folder, user
        self.home = folder / "home"
        self.place = "far"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]

    @property
    def options(self) -> list[str]:
        """Arguments of ``ssh`` that reach the account."""
        return ["-F", str(self.folder / "client.conf")]

    @property
    def python(self) -> str:
        """Interpreter of the account."""
        return "~/venv/bin/python"

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.user).pw_uid

    @property
    def runs(self) -> Path:
        """Folder of runs of the account."""
        return self.home / "runs"

    def up(self) -> None:
        """Make the account and its interpreter, and start the server."""
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o755)
        # An account whose password is "!" is locked, also for keys.
        argv = [
            "useradd",
            "--create-home",
            "--home-dir",
            str(self.home),
            "--shell",
            "/bin/bash",
            "--password",
            "*",
            self.user,
        ]
        subprocess.run(argv, check=True, capture_output=True)
        self._make_interpreter()
        self._make_keys()
        self.start()

    def down(self) -> None:
        """End everything of the account, and remove it."""
        self.stop()
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        deadline = time.monotonic() + UP_S
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        subprocess.run(["umount", str(self.folder / "python")], check=False, capture_output=True)
        subprocess.run(["userdel", self.user], check=False, capture_output=True)
        if not os.path.ismount(self.folder / "python"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server."""
        Path("/run/sshd").mkdir(exist_ok=True)
        subprocess.run([debian.program("sshd"), "-f", str(self.folder / "sshd.conf")], check=True)
        deadline = time.monotonic() + UP_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert time.monotonic() < deadline, "the SSH server did not start"
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server and all its connections, as if the machine could not be reached. Its jobs go on."""
        with contextlib.suppress(OSError, ValueError):
            server = psutil.Process(int((self.folder / "sshd.pid").read_text()))
            children = server.children(recursive=True)
            debian.end(server.pid, server.is_running)
            for process in children:  # of a connection; its jobs have left its session
                with contextlib.suppress(psutil.NoSuchProcess):
                    if process.name().startswith("sshd"):
                        process.kill()

    def processes(self, run_id: str = "") -> list[psutil.Process]:
        """Return the processes of the account, or those of a run."""
        return [
            process
            for process in psutil.process_iter(["uids", "cmdline", "status"])
            if process.info["uids"]
            and process.info["uids"].real == self.uid
            and process.info["status"] != psutil.STATUS_ZOMBIE
            and run_id in " ".join(process.info["cmdline"] or ())
        ]

    def _make_interpreter(self) -> None:
        """Make an interpreter for the account. Its own may not be readable, so that it is mounted in a second place."""
        base = self.folder / "python"
        base.mkdir()
        subprocess.run(["mount", "--bind", "-o", "ro", sys.base_prefix, str(base)], check=True)
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        venv = self.home / "venv"
        argv = [str(base / "bin" / name), "-m", "venv", "--without-pip", str(venv)]
        subprocess.run(argv, check=True, capture_output=True)
        packages = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]
        (venv / "lib" / name / "site-packages" / "tests.pth").write_text("\n".join(packages) + "\n")

    def _make_keys(self) -> None:
        values = {"port": self.port, "folder": self.folder, "user": self.user}
        for name in ("host_key", "key"):
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(argv, check=True)
        shutil.copy(self.folder / "key.pub", self.folder / "authorized_keys")
        (self.folder / "authorized_keys").chmod(0o644)
        kind, key = (self.folder / "host_key.pub").read_text().split()[:2]
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")
        (self.folder / "sshd.conf").write_text(CONF.format(**values))
        (self.folder / "client.conf").write_text(CLIENT.format(**values))


@contextlib.contextmanager
def machine() -> Iterator[Machine]:
    """Provide an account behind an SSH server."""
    found = Machine(Path(f"/tmp/rlnb-ssh-{os.getpid()}"), f"rlnb{os.getpid()}")
    try:
        found.up()
        yield found
    finally:
        found.down()
