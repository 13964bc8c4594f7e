"""The images of ``rlnb containers write``, built on the rig's stand-in for the public image of Python, and used.

python benchmarks/images.py dist    # as root; dist is the folder of `make wheels extension-wheel`
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from results import record

REPO = Path(__file__).parents[1]
sys.path.insert(0, str(REPO / "tests" / "rig"))

import debian  # noqa: E402
import podman as rig  # noqa: E402

WORKER, NOTEBOOK = "localhost/rlnb-worker", "localhost/rlnb-notebook"
STRANGER = ("--user=4321:4321", "--passwd=false")
"""A user id that has no name in the image, as Kubernetes and ``docker run --user`` give one."""
TASK = ("Isaac-Cartpole-Camera-Direct", "--device", "cpu", "--num-envs", "16", "--max-iterations", "2")
PORT = 18888


def podman(*argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run podman with its output passed on to stderr, and return its stdout."""
    return subprocess.run(["podman", *argv], check=check, stdout=subprocess.PIPE, text=True)


def built(image: str, context: Path, *argv: str) -> str:
    """Build an image, and return its size and the minutes that the build took."""
    recipe = f"Containerfile.{image.rpartition('-')[2]}"
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory() as secret:
        access = rig.pip_access(Path(secret))
        podman("build", "--network=host", *access, *argv, f"--tag={image}", f"--file={context / recipe}", str(context))
    minutes = (time.monotonic() - start_s) / 60
    return f"{_size_gb(image):.2f} GB, built in {minutes:.1f} min"


def _size_gb(image: str) -> float:
    return int(podman("image", "inspect", "--format={{.Size}}", image).stdout) / 1e9


@contextlib.contextmanager
def container(image: str, *options: str, command: Sequence[str] = ("sleep", "3600")) -> Iterator[str]:
    """Start a container of a stranger without network, and remove it at the end. Yields its id."""
    network = () if any(option.startswith("--network") for option in options) else ("--network=none",)
    name = podman("run", "--detach", *STRANGER, *network, *options, image, *command)
    try:
        yield name.stdout.strip()
    finally:
        podman("rm", "--force", "--time=0", name.stdout.strip())


def check_doctor(image: str) -> None:
    with container(image) as name:
        answer = podman("exec", name, "rlnb", "doctor", "--json", check=False)
        findings = json.loads(answer.stdout)
    print(json.dumps(findings, indent=1), file=sys.stderr)
    faults = [finding for finding in findings if finding["level"] == "fault"]
    warnings = [finding["name"] for finding in findings if finding["level"] == "warning"]
    measured = f"{len(faults)} faults, warnings: {', '.join(warnings) or 'none'}"
    what = f"{image.rpartition('/')[2]}: rlnb doctor as a user id without a name, without network"
    record(what, measured, "no fault", not faults and answer.returncode == 0)


def check_start() -> None:
    """Compare the first training of a container with one that finds no kernels, and with a second one."""
    seconds = []
    with container(WORKER, "--env=RLNB_PREBUILT=") as name:
        seconds += [_train_s(name)]
    with container(WORKER) as name:
        seconds += [_train_s(name), _train_s(name)]
    with container(WORKER, "--read-only", "--tmpfs=/home/rlnb:mode=1777", "--tmpfs=/tmp:mode=1777") as name:
        seconds += [_train_s(name)]
    cold, first, second, read_only = seconds
    measured = f"{first:.0f} s; the second {second:.0f} s; in a read-only image {read_only:.0f} s; cold {cold:.0f} s"
    bound = "at most 1.25 times the second"
    what = "rlnb-worker: first training (2 iterations) as a user id without a name"
    record(what, measured, bound, max(first, read_only) <= 1.25 * second)


def _train_s(name: str) -> float:
    start_s = time.monotonic()
    podman("exec", name, "rlnb", "train", *TASK)
    return time.monotonic() - start_s


def check_stop() -> None:
    """Stop a container in the middle of a training, as Kubernetes and Docker do."""
    argv = ("rlnb", "train", *TASK[:-1], "100000")
    with container(WORKER, command=argv) as name:
        deadline = time.monotonic() + 120
        while "iteration 1 of" not in _log(name) and time.monotonic() < deadline:
            time.sleep(1)
        start_s = time.monotonic()
        podman("stop", "--time=60", name)
        took_s = time.monotonic() - start_s
        status = podman("inspect", "--format={{.State.ExitCode}}", name).stdout.strip()
    measured = f"{took_s:.1f} s, exit status {status}"
    record("rlnb-worker: SIGTERM during a training", measured, "< 30 s, not killed", took_s < 30 and status != "137")


def _log(name: str) -> str:
    done = subprocess.run(["podman", "logs", name], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode(errors="replace")


def check_demo() -> None:
    with container(NOTEBOOK) as name:
        start_s = time.monotonic()
        podman("exec", name, "rlnb", "demo", "--out", "/data/demo")
        minutes = (time.monotonic() - start_s) / 60
        runs = json.loads(podman("exec", name, "rlnb", "runs", "--json").stdout)
        size = podman("exec", name, "stat", "--format=%s", "/data/demo/quickstart.html").stdout
    states = [run["state"] for run in runs]
    measured = f"{minutes:.1f} min, its run is {', '.join(states)}, report of {int(size) / 1e6:.2f} MB"
    what = "rlnb-notebook: rlnb demo as a user id without a name, without network"
    record(what, measured, "completed", states == ["completed"])


def check_jupyter() -> None:
    with container(NOTEBOOK, "--network=host", command=["jupyter", "lab", f"--port={PORT}", "--no-browser"]) as name:
        start_s, answer = time.monotonic(), {}
        while not answer and time.monotonic() < start_s + 60:
            with contextlib.suppress(OSError):
                answer = json.load(urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api"))
            time.sleep(0.2)
        up_s = time.monotonic() - start_s
        panel = podman("exec", name, "jupyter", "labextension", "list", check=False)
        start_s = time.monotonic()
        podman("stop", "--time=30", name)
        took_s = time.monotonic() - start_s
    measured = f"answers after {up_s:.1f} s, ends {took_s:.1f} s after SIGTERM"
    record("rlnb-notebook: JupyterLab", measured, "answers, ends in 10 s", bool(answer) and took_s < 10)
    print(panel.stdout, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dist", type=Path)
    parser.add_argument("--tasks", help="tasks whose kernels are compiled, instead of those of the recipe")
    arguments = parser.parse_args()
    settings = Path(tempfile.mkdtemp(prefix="rlnb-images-")) / "containers.conf"
    rig.write_settings(settings, shared=False)
    os.environ["CONTAINERS_CONF"] = str(settings)
    if debian.missing(rig.PROGRAMS):
        sys.exit(f"Some of these Debian packages are missing: {', '.join(rig.PROGRAMS.values())}")
    if podman("image", "exists", rig.BASE, check=False).returncode:
        rig.build_base()
    with tempfile.TemporaryDirectory(prefix="rlnb-images-") as folder:
        write = [sys.executable, "-m", "rlnb", "containers", "write", folder, "--wheels", str(arguments.dist)]
        subprocess.run(write, check=True)
        tasks = [f"--build-arg=TASKS={arguments.tasks}"] if arguments.tasks else []
        worker = built(WORKER, Path(folder), f"--build-arg=BASE={rig.BASE}", *tasks)
        record("image rlnb-worker: size", f"{worker}, base {_size_gb(rig.BASE):.2f} GB", "stated", True)
        notebook = built(NOTEBOOK, Path(folder))
        record("image rlnb-notebook: size", f"{notebook}, with the layers of rlnb-worker", "stated", True)
    for image in (WORKER, NOTEBOOK):
        check_doctor(image)
    check_start()
    check_stop()
    check_demo()
    check_jupyter()


if __name__ == "__main__":
    main()
