"""A real Grid Engine with one node on this machine: no systemd, and no file outside one folder.

    python tests/rig/sge.py up       # or: make sge-up
    python tests/rig/sge.py down

The cell, its spool and its ports belong to this Grid Engine alone, so several of them can run at once, and an installed
one is not touched. When run as root, the script installs the Debian packages gridengine-master, gridengine-exec,
gridengine-client and db-util.
"""

from __future__ import annotations

import argparse
import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import debian
import psutil

PROGRAMS = {
    "sge_qmaster": "gridengine-master",
    "sge_execd": "gridengine-exec",
    "qsub": "gridengine-client",
    "db_dump": "db-util",
}
"""Required programs, and the Debian package of each."""
PRIVATE = Path("/usr/lib/gridengine")
"""Debian's programs that set up a spool."""
SHARED = Path("/usr/share/gridengine")
"""Debian's templates: the configuration of a cell, its resources, and parallel environments."""
SLOTS = 4
UP_S, DOWN_S = 30.0, 10.0
"""Seconds that Grid Engine may take to start and to stop."""
BOOTSTRAP = """admin_user none
default_domain none
ignore_fqdn false
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params {folder}/spool/db
binary_path /usr/sbin
qmaster_spool_dir {folder}/spool/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
# The daemons read the ids of users when they start: with the default of 1000, the first job of root would put the queue
# into its error state. The accounting file is flushed each second, not each quarter of a minute.
CELL = {
    "execd_spool_dir": "{folder}/spool/execd",
    "min_uid": "0",
    "min_gid": "0",
    "load_report_time": "00:00:05",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false sharelog=00:00:00",
}
QUEUE = {"qname": "main", "hostlist": "{host}", "slots": "{slots}", "load_thresholds": "NONE", "pe_list": "smp"}
"""The queue. All else is Grid Engine's default, such as a shell that ignores the first line of a job's script."""
SCHEDULER = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1", "schedd_job_info": "true"}


class GridEngine:
    """A Grid Engine on this machine, with one queue ``main`` and one parallel environment ``smp``.

    Args:
        folder: Folder for the cell and its spool.
        slots: Number of slots of the node, whatever cores it has.
        port: Port of the master. The node's daemon takes the next one.
    """

    def __init__(self, folder: Path, slots: int = SLOTS, port: int = 6444) -> None:
        self.folder, self._slots, self._port = folder, slots, port
        self._host = socket.gethostname()

    @property
    def env(self) -> Mapping[str, str]:
        """Variables with which ``qsub`` and other commands use this Grid Engine."""
        ports = {"SGE_QMASTER_PORT": str(self._port), "SGE_EXECD_PORT": str(self._port + 1)}
        return {"SGE_ROOT": str(self.folder), "SGE_CELL": "default", **ports}

    def up(self) -> None:
        """Start the daemons, and wait until the queue can run jobs.

        Raises:
            RuntimeError: Grid Engine did not come up. The message shows the end of its logs.
        """
        os.environ.update(self.env)
        if not (self.folder / "util").exists():
            self._make_cell()
        if not self._alive("qmaster"):
            _run("sge_qmaster")
            self._wait("qconf", "-sh")
            self._run_ok("qconf", "-as", self._host)
            self._run_ok("qconf", "-Ap", str(SHARED / "util" / "resources" / "pe" / "smp"))
            self._configure("-Msconf", _edited(_run("qconf", "-ssconf"), SCHEDULER))
        if not self._alive("execd"):
            _run("sge_execd")
            self._wait("qconf", "-se", self._host)
            facts = {name: text.format(host=self._host, slots=self._slots) for name, text in QUEUE.items()}
            if "main" not in _answer("qconf", "-sql").stdout.split():
                self._configure("-Aq", _edited(_run("qconf", "-sq"), facts))
        deadline = time.monotonic() + UP_S
        while not re.search(r"^main@.* \d+\.\d+ ", _answer("qstat", "-f").stdout, re.MULTILINE):  # the node's load
            if time.monotonic() > deadline:
                raise RuntimeError(f"Grid Engine did not come up in {UP_S:.0f} s.\n{self.logs()}")
            time.sleep(0.1)

    def jobs(self) -> list[str]:
        """Return the ids of all jobs in the queue: waiting, running or ending."""
        return re.findall(r"^ *(\d+) ", _answer("qstat", "-u", "*").stdout, re.MULTILINE)

    def set_enabled(self, enabled: bool) -> None:
        """Let the queue start jobs, or not."""
        _run("qmod", "-e" if enabled else "-d", "main")

    def stop_master(self) -> None:
        """Stop the master, which answers qsub and qstat. Jobs on the node continue."""
        self._kill("qmaster")

    def down(self) -> None:
        """Delete every job and stop both daemons."""
        os.environ.update(self.env)
        if self._alive("qmaster") and self.jobs():
            _answer("qdel", "-f", *self.jobs())
            deadline = time.monotonic() + DOWN_S
            while self.jobs() and time.monotonic() < deadline:
                time.sleep(0.1)
        for daemon in ("execd", "qmaster"):
            self._kill(daemon)
        shutil.rmtree(self.folder, ignore_errors=True)

    def logs(self) -> str:
        """Return the end of every log."""
        return "\n".join(
            f"== {path.parent.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:])
            for path in sorted((self.folder / "spool").rglob("messages"))
        )

    def _make_cell(self) -> None:
        common, spool = self.folder / "default" / "common", self.folder / "spool"
        for folder in (common, spool / "qmaster" / "job_scripts", spool / "db", spool / "execd"):
            folder.mkdir(parents=True, exist_ok=True)
        (common / "bootstrap").write_text(BOOTSTRAP.format(folder=self.folder))
        (common / "act_qmaster").write_text(f"{self._host}\n")
        # Grid Engine takes the first name of an address, which is often localhost for this host's.
        (common / "host_aliases").write_text(f"{self._host} localhost\n")
        cell = self.folder / "cell"
        values = {name: text.format(folder=self.folder) for name, text in CELL.items()}
        cell.write_text(_edited((SHARED / "default-configuration").read_text(), values))
        _run(str(PRIVATE / "spoolinit"), "berkeleydb", "libspoolb", str(spool / "db"), "init")
        resources = SHARED / "util" / "resources"
        for what, value in (("configuration", cell), ("complexes", resources / "centry")):
            _run(str(PRIVATE / "spooldefaults"), what, str(value))
        _run(str(PRIVATE / "spooldefaults"), "usersets", str(resources / "usersets"))
        _run(str(PRIVATE / "spooldefaults"), "managers", getpass.getuser())
        (self.folder / "util").symlink_to(SHARED / "util")

    def _configure(self, option: str, text: str) -> None:
        path = self.folder / "wanted"
        path.write_text(text)
        _run("qconf", option, str(path))

    def _run_ok(self, *argv: str) -> None:
        """Run a command that fails if its entry exists already."""
        done = _answer(*argv)
        if done.returncode and "already exists" not in done.stderr:
            raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")

    def _wait(self, *argv: str) -> None:
        deadline = time.monotonic() + UP_S
        while _answer(*argv).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{' '.join(argv)} did not succeed in {UP_S:.0f} s.\n{self.logs()}")
            time.sleep(0.1)

    def _pid(self, daemon: str) -> int | None:
        for path in (self.folder / "spool").rglob(f"{daemon}.pid"):
            text = path.read_text().strip()
            return int(text) if text else None
        return None

    def _alive(self, daemon: str) -> bool:
        pid = self._pid(daemon)
        try:
            return pid is not None and daemon in psutil.Process(pid).name()
        except psutil.NoSuchProcess:
            return False

    def _kill(self, daemon: str) -> None:
        debian.end(self._pid(daemon), lambda: self._alive(daemon))


def missing() -> list[str]:
    """Return the required Debian packages that are missing, after an attempt to install them as root."""
    lacking = debian.missing(PROGRAMS)
    return lacking if lacking or SHARED.is_dir() else ["gridengine-common, in Debian's folders"]


def by_hand() -> GridEngine:
    """Return the Grid Engine that ``make sge-up`` starts."""
    return GridEngine(Path(tempfile.gettempdir()) / f"rlnb-sge-{os.getuid()}")


def _edited(text: str, values: Mapping[str, str]) -> str:
    """Return a file of Grid Engine's configuration with other values; it has a name and a value on each line."""
    for name, value in values.items():
        text = re.sub(rf"^{name}\s.*$", lambda _, line=f"{name} {value}": line, text, flags=re.MULTILINE)  # type: ignore[misc]
    return text


def _answer(*argv: str) -> subprocess.CompletedProcess[str]:
    program = debian.program(argv[0]) or argv[0]
    return subprocess.run([program, *argv[1:]], capture_output=True, text=True, check=False)


def _run(*argv: str) -> str:
    done = _answer(*argv)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("up", "down"))
    what, engine = parser.parse_args().what, by_hand()
    if lacking := missing():
        sys.exit(f"Grid Engine is not installed. Use apt-get install {' '.join(lacking)}")
    if what == "up":
        engine.up()
        settings = " ".join(f"{name}={value}" for name, value in engine.env.items())
        print(f"Its queue has {SLOTS} slots. For this shell: export {settings}")
    else:
        engine.down()


if __name__ == "__main__":
    main()
