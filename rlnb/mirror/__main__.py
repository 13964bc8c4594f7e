"""``python -m rlnb.mirror``: the end of a mirror on the machine of the runs, on its standard input and output."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.mirror.frames import BEGIN, Channel, Closed, Frame
from rlnb.mirror.server import RunServer, answer_inquiry, hold, send_file
from rlnb.records.layout import RunDir
from rlnb.settings import Root, options
from rlnb.spec import Manifest
from rlnb.storage import files
from rlnb.storage.serial import from_json

OPEN_S = 30.0
"""Seconds within which the other end says what it wants."""


def channel() -> Channel:
    """Return the connection on the standard streams. What the plugins of this machine print is an error output."""
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    frames.write(BEGIN)
    frames.flush()
    reader = os.fdopen(os.dup(0), "rb")  # at its end, Python waits for the lock of sys.stdin, which a reader holds
    return Channel(reader, frames)


def serve(to: Channel, wish: Frame) -> None:
    """Do what the first frame wants.

    Raises:
        RlnbError: The request is malformed, or cannot be met.
    """
    data = wish.data
    env = data.get("env")
    if isinstance(env, Mapping):
        os.environ.update({name: str(value) for name, value in env.items()})
        options.team = os.environ.get("RLNB_TEAM") == "1"
    root = Root(Path(str(data.get("root", ""))).expanduser())
    files.restrict_umask(root.path)
    entries = data.get("manifest")
    manifest = from_json(Manifest, entries if isinstance(entries, Mapping) else {}, ignore_unknown=True)
    if wish.kind == "check":
        to.send(answer_inquiry(root, manifest))
    elif wish.kind == "fetch":
        send_file(to, RunDir(root.runs / manifest.run_id), wish)
        to.receive(OPEN_S)  # the other end closes once it has everything
    elif wish.kind == "simulator":
        idle_s = data.get("idle_s")
        hold(to, root, manifest, idle_s if isinstance(idle_s, int | float) else None)
    else:
        have = data.get("have")
        RunServer(to, root, manifest, have if isinstance(have, Mapping) else {}).serve()


def main() -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end of the connection shows in the streams
    to = channel()
    with contextlib.suppress(Closed):
        wish = to.receive(OPEN_S)
        if wish is None:
            return 1
        try:
            serve(to, wish)
        except (RlnbError, OSError) as exc:
            to.send(Frame(kind="failed", data={"error": f"{exc}"}))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
