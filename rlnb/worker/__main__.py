"""The worker's command line.

``python -m rlnb.worker KIND RUN_DIR JOB_DIR`` does a job; the node agent or torchrun starts it.
``python -m rlnb.worker serve PIPE`` is the warm simulator, which writes its replies to a named pipe.
Both end at once when their stdin, a pipe of the agent, is closed at its other end.
``python -m rlnb.worker assets-build [FOLDER] [--robots] [--force]`` builds the offline asset packs and prints their
folder, the packs that failed and the files that it kept, as JSON.
``python -m rlnb.worker asset-root CLOUD`` prints the asset root that robot assets come from, as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import getpass
import json
import os
import select
import signal
import sys
import threading
from pathlib import Path

from rlnb.storage import files, temporary
from rlnb.worker import openmp
from rlnb.worker.isaac import modules
from rlnb.worker.jobs.job import work


def _asset_root(cloud: str) -> int:
    """Print the asset root or an error, as JSON. Details go to stderr, the log of the process that started this one."""
    import logging

    from rlnb.errors import RlnbError
    from rlnb.storage.serial import to_json
    from rlnb.worker.assets import root

    _end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    answer = os.dup(1)
    os.dup2(2, 1)  # prints of a pack's own code belong in the log
    try:
        message = to_json(root.resolve(cloud))
    except RlnbError as exc:
        message = {"error": str(exc)}
    except OSError as exc:
        fix = "Set RLNB_CACHE to a folder that you can write to, or asset_root to a folder of assets."
        message = {"error": f"The asset packs cannot be written: {exc}. {fix}"}
    os.write(answer, json.dumps(message).encode() + b"\n")
    return 0


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def _name_user() -> None:
    """Name a user id that has no name, as in many containers, by its number: torch's compiler asks for a name."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = str(os.getuid())


def _end_with_agent() -> None:
    """End this process when the agent is gone, however it ended.

    Only a direct child of the agent gets a signal from Linux. Through a wrapper such as ``isaaclab.sh -p``, only the
    standard streams reach the worker. ``PR_SET_PDEATHSIG`` would not do: a wrapper may start further wrappers, and
    one with threads ends the thread that started this process.
    """
    with contextlib.suppress(OSError):  # without stdin, there is no agent
        agent = os.dup(0)
        threading.Thread(target=_end_after, args=(agent,), daemon=True, name="end with agent").start()


def _end_after(pipe: int) -> None:
    """Kill this process when the other end of a pipe is closed."""
    hangup = select.poll()
    hangup.register(pipe, 0)  # POLLHUP only; data stays in the pipe
    hangup.poll()
    os.kill(os.getpid(), signal.SIGKILL)


def main(argv: list[str]) -> int:
    files.restrict_umask()
    _name_user()
    faulthandler.register(signal.SIGUSR1)  # the agent sends it to get the stacks of all threads
    if argv[0] == "asset-root":
        return _asset_root(argv[1])
    modules.search_working_folder()
    temporary.use()
    openmp.manage_waits()
    if argv[0] == "serve":
        _end_with_agent()
        from rlnb.worker.requests.serve import serve

        return serve(Path(argv[-1]))
    if argv[0] == "assets-build":
        from rlnb.storage.serial import to_json
        from rlnb.worker.assets import packs

        folder = next((Path(a) for a in argv[1:] if not a.startswith("--")), None)
        build = packs.build(folder, on_request="--robots" in argv, force="--force" in argv)
        sys.stdout.write(f"{json.dumps(to_json(build))}\n")
        return 0
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun starts each rank in a session of its own
        _end_with_parent()
    _end_with_agent()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # input() in a task's code must not wait
    kind, _run_dir, job_dir = argv
    return work(kind, Path(job_dir))


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Simulators are known to hang in their exit handlers; every record is on disk by now.
    os._exit(status)
