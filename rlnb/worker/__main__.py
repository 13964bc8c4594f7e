"""``python -m rlnb.worker KIND RUN_DIR JOB_DIR``, started by the node agent or by torchrun, and
``python -m rlnb.worker serve REPLY_FD``, the warm worker; ``python -m rlnb.worker assets-build [FOLDER]
[--robots] [--force]`` writes the offline asset packs and prints what that left, as JSON;
``python -m rlnb.worker asset-root CLOUD`` prints where robot assets come from."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

ECHO_S = 5.0
"""Seconds that a rank waits before it reports that another one has left it: that one knows why."""


def work(kind: str, job_dir: Path) -> int:
    """Do one job; return the exit status. What goes wrong is written to the job's result."""
    try:
        if kind == "train":
            from rlnb.worker.train import train as verb
        elif kind == "evaluate":
            from rlnb.worker.evaluate import evaluate as verb
        else:
            from rlnb.worker.export import export as verb
        verb(job_dir)
    except (Exception, SystemExit) as exc:  # Isaac Lab exits where Isaac Sim would be needed
        traceback.print_exc()
        _report(kind, job_dir, exc)
        return 1
    return 0


def _report(kind: str, job_dir: Path, exc: BaseException) -> None:
    from rlnb import plugins
    from rlnb.records import files
    from rlnb.records.layout import JobDir
    from rlnb.serial import to_json
    from rlnb.spec import Result
    from rlnb.worker.context import open_job

    if _is_echo(exc):
        deadline = time.monotonic() + ECHO_S
        while not JobDir(job_dir).result.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    result = Result(
        outcome="failed",
        error=f"{type(exc).__name__}: {exc}",
        detail=traceback.format_exc(),
        exit_code=1,
        ended=files.now(),
    )
    job = JobDir(job_dir)
    first = files.write_once(job.result, to_json(result), job.reserve)  # else a hook raised after the run had completed
    if first and kind == "train" and os.environ.get("RANK", "0") == "0":
        run, _, manifest, _ = open_job(job_dir)
        plugins.manager().hook.rlnb_run_finished(run_dir=run.path, manifest=manifest, result=result)


def _is_echo(exc: BaseException) -> bool:
    """Return whether an exception only says that another rank is gone, in the words of torch, gloo or NCCL."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return False
    return type(exc).__name__.startswith("Dist") or any(word in str(exc) for word in ("gloo", "NCCL", "ncclInternal"))


def _asset_root(cloud: str) -> int:
    """Print the asset root as JSON, or why there is none; the log of the worker that asks has the details."""
    import logging

    from rlnb.errors import RlnbError
    from rlnb.serial import to_json
    from rlnb.worker import assets

    _end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    answer = os.dup(1)
    os.dup2(2, 1)  # a pack's own prints are for the log
    try:
        said = to_json(assets.resolve(cloud))
    except RlnbError as exc:
        said = {"error": str(exc)}
    except OSError as exc:
        words = "Set RLNB_CACHE to a folder that you can write to, or asset_root to a folder of assets."
        said = {"error": f"The asset packs cannot be written: {exc}. {words}"}
    os.write(answer, json.dumps(said).encode() + b"\n")
    return 0


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def main(argv: list[str]) -> int:
    faulthandler.register(signal.SIGUSR1)  # the agent's question where each thread is
    if argv[0] == "asset-root":
        return _asset_root(argv[1])
    if argv[0] == "serve":
        from rlnb.worker.serve import serve

        return serve(int(argv[1]))
    if argv[0] == "assets-build":
        from rlnb.serial import to_json
        from rlnb.worker import packs

        folder = next((Path(a) for a in argv[1:] if not a.startswith("--")), None)
        built = packs.build(folder, on_request="--robots" in argv, force="--force" in argv)
        sys.stdout.write(f"{json.dumps(to_json(built))}\n")
        return 0
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun's ranks are in sessions of their own
        _end_with_parent()
    kind, _run_dir, job_dir = argv
    return work(kind, Path(job_dir))


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Simulators are known to hang in their exit handlers; every record is on disk by now.
    os._exit(status)
