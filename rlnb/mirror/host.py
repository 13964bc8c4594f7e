"""``python -m rlnb.mirror.host JOB_DIR``: mirror the run of a job from another machine, as long as the run goes on.

One process mirrors all jobs of a run, through one connection. After the end of a connection, the process tries to
connect again until it succeeds, with longer and longer pauses. The run goes on there meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import random
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.mirror.connection import Connection
from rlnb.mirror.frames import Closed, Frame
from rlnb.mirror.launcher import RemoteLauncher, refuse_theirs
from rlnb.mirror.replica import RunReplica
from rlnb.records import remote
from rlnb.records.layout import RunDir, run_dir_of
from rlnb.records.record import RunRecord
from rlnb.storage import entries, files

logger = logging.getLogger("rlnb.mirror")

LOCK_S = 3.0
"""Seconds for which the lock is tried. Processes that look whether it is held hold it for a moment."""
LOOK_S = 0.2
"""Seconds between two looks at the folder of the run."""
BEAT_S = 1.0
HELLO_S = 30.0
"""Seconds within which the other end has to say its first word."""
SILENT_S = 20.0
"""Seconds without a word after which the connection is given up. The other end says something every second."""
PING_S = 5.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Seconds between two attempts to connect. Each pause is twice the last one."""


class Host:
    """Mirrors one run.

    Args:
        run: Folder of the run.
        launcher: Launcher of the run.
    """

    def __init__(self, run: RunDir, launcher: RemoteLauncher) -> None:
        self._run, self._launcher = run, launcher
        self._record = RunRecord(run.path)
        library = plugins.library(self._record.manifest.library)
        self._near = RunReplica(run, library, launcher.place)
        self._pause_s = FIRST_PAUSE_S
        self._away_since = self._what = self._why = ""
        """Begin, kind and cause of the time in which nothing is mirrored; empty while it is."""
        self._beat_s = float("-inf")

    def run(self) -> None:
        """Mirror the run until all its jobs have ended, or its folder is gone."""
        while self.is_needed():
            try:
                with Connection(self._launcher.argv()) as connection:
                    try:
                        self._serve(connection)
                    except Closed as exc:
                        self._lost(self._launcher.reason(connection.code, connection.reason(exc)))
                    except OSError as exc:  # a full disk
                        self._lost(str(exc), f"what {self._launcher.place} sends cannot be written here")
            except (OSError, RlnbError) as exc:  # the command is not installed
                self._lost(str(exc))
            if self.is_needed():
                self._wait()

    def is_needed(self) -> bool:
        """Return whether a job goes on."""
        return files.there(self._run.manifest) and bool(self._near.open_jobs())

    def _serve(self, connection: Connection) -> None:
        """Exchange changes until the run needs no mirror any more.

        Raises:
            Closed: The connection has ended.
        """
        channel = connection.channel
        self._near.begin()
        channel.send(self._launcher.wish("serve", self._record.manifest, {"have": self._near.have()}))
        pinged_s, heard = time.monotonic(), False
        while self.is_needed():
            frame, begin_s = channel.receive(LOOK_S), time.monotonic()
            while frame is not None:
                heard = True
                self._receive(frame)
                if frame.kind == "states":  # the first changes are written, which would fail again on each connection
                    self._pause_s, self._away_since = FIRST_PAUSE_S, ""
                # Also while much arrives without a pause, jobs are cancelled, and the other end hears of this one.
                frame = channel.receive(0) if time.monotonic() - begin_s < BEAT_S else None
            now_s = time.monotonic()
            if now_s - channel.heard_s > (SILENT_S if heard else HELLO_S):
                raise Closed("it does not answer")
            self._beat("" if heard else f"connecting to {self._launcher.place}")
            if heard:  # a job is sent only on a connection that has carried something
                self._near.send(channel)
            if now_s - pinged_s > PING_S:
                channel.send(Frame(kind="ping"))
                connection.forget()
                pinged_s = now_s

    def _receive(self, frame: Frame) -> None:
        """Write what has arrived. A malformed frame closes the connection and has no other effect.

        Raises:
            Closed: The frame does not fit what is here.
            OSError: A file cannot be written.
        """
        try:
            self._near.receive(frame)
        except (Closed, OSError):
            raise
        except Exception as exc:
            logger.exception("%s sent a frame that cannot be used", self._launcher.place)
            raise Closed(f"a frame for {frame.path!r} cannot be used ({exc!r})") from exc

    def _beat(self, waits: str) -> None:
        self._near.end_unsent()
        if time.monotonic() - self._beat_s > BEAT_S:
            self._beat_s = time.monotonic()
            self._near.beat(waits)

    def _lost(self, why: str, what: str = "") -> None:
        """Note why nothing is mirrored.

        Args:
            why: The cause.
            what: What does not work; empty is the connection.
        """
        logger.info("%s: %s", self._launcher.place, why)
        self._away_since = self._away_since or f"{datetime.now():%H:%M}"
        self._what = what or f"no connection to {self._launcher.place}"
        self._why = why.partition("\n")[0]

    def _wait(self) -> None:
        """Wait before the next attempt."""
        end_s = time.monotonic() + self._pause_s * random.uniform(0.8, 1.2)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        while time.monotonic() < end_s and self.is_needed():
            with contextlib.suppress(OSError):  # a full disk
                self._beat(f"{self._what} since {self._away_since} ({self._why})")
            time.sleep(LOOK_S)


@contextlib.contextmanager
def lock(run: RunDir) -> Iterator[bool]:
    """Hold the lock of the run's mirror; yield whether this process got it."""
    with entries.open_to_change(remote.lock_of(run)) as file:
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    yield False
                    return
                time.sleep(0.05)
            else:
                yield True
                return


def main() -> None:
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    logger.setLevel(logging.INFO)
    run = run_dir_of(Path(sys.argv[1]))
    files.restrict_umask(run.path)
    refuse_theirs(run)
    launcher = plugins.launcher_of(RunRecord(run.path).manifest)
    if not isinstance(launcher, RemoteLauncher):
        raise RlnbError(f"{run.path} is not a run of another machine.")
    host = Host(run, launcher)
    waits = True
    while waits:
        with lock(run) as ours:
            if not ours:  # another process mirrors the run, and finds this job
                return
            host.run()
        waits = host.is_needed()  # a job that was added while this process let go of the lock


if __name__ == "__main__":
    main()
