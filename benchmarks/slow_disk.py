"""Times the index of 10,000 runs on a file system that answers each call after 5 ms, as a busy shared one does.

    python benchmarks/slow_disk.py [--runs 10000] [--delay-ms 5]

It needs root, /dev/fuse, a C compiler and Debian's packages fuse3 and libfuse3-dev. The runs are copies of one run of
the echo library.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from results import record

import rlnb
from rlnb.records.layout import RunDir
from rlnb.storage import files

SOURCE = Path(__file__).with_name("slow_disk.c")
PAGE, FIRST_S, BOUND_S = 50, 2.0, 3.0
"""Rows of a page, seconds that a first look may take, and the bound for all of it."""
READ_ALL_S = 900.0
LOOK = """
import json, sys, time
import rlnb
index = rlnb.launchers.RunIndex([sys.argv[1]])

def timed(limit_s):
    begun = time.perf_counter()
    index.refresh(limit_s)
    return time.perf_counter() - begun, len(index.runs)

cold, page = timed(float(sys.argv[2]))
begun = time.monotonic()
while index.behind and time.monotonic() - begun < float(sys.argv[3]):
    timed(60.0)
warm = [timed(float("inf")) for _ in range(5)]
print(json.dumps([cold, page, max(seconds for seconds, _ in warm), warm[-1][1], time.monotonic() - begun]))
"""


def copies(root: Path, count: int) -> None:
    """Train one run and copy it until there are ``count`` runs. All files but the manifest are hard links."""
    rlnb.options.root = root
    one = rlnb.train("Echo", library="echo", max_iterations=20).wait()
    manifest = files.read_json(RunDir(one.path).manifest) or {}
    for number in range(1, count):
        copy = RunDir(one.path.with_name(f"{one.id[:-4]}{number:06}"))
        shutil.copytree(one.path, copy.path, copy_function=os.link, ignore=shutil.ignore_patterns("manifest.json"))
        copy.manifest.write_text(json.dumps({**manifest, "run_id": copy.path.name, "seed": number}))


@contextlib.contextmanager
def slow(folder: Path, delay_ms: float) -> Iterator[Path]:
    """Mount a file system that passes calls on to a folder after a delay, and yield its mount point."""
    base = Path(tempfile.mkdtemp(prefix="rlnb-slow-"))
    program, mount = base / "slow_disk", base / "mount"
    mount.mkdir()
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True
    ).stdout.split()
    subprocess.run(["cc", "-O2", str(SOURCE), "-o", str(program), *flags], check=True)
    subprocess.run([program, folder, str(int(1000 * delay_ms)), mount, "-o", "max_idle_threads=64"], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(mount)], check=True)
        shutil.rmtree(base, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--delay-ms", type=float, default=5.0)
    arguments = parser.parse_args()
    memory = Path("/dev/shm")  # the calls of this folder are to take no time of their own
    root = Path(tempfile.mkdtemp(prefix="rlnb-bench-", dir=memory if memory.is_dir() else None)) / "rlnb"
    copies(root, arguments.runs)
    with slow(root, arguments.delay_ms) as mount:
        kernel = [sys.executable, "-c", LOOK, str(mount), str(FIRST_S), str(READ_ALL_S)]
        output = subprocess.run(kernel, capture_output=True, text=True, check=True).stdout
    cold, page, warm, count, read_s = json.loads(output)
    shutil.rmtree(root.parent)
    record(
        f"{arguments.runs:,} runs on a file system with {arguments.delay_ms:g} ms per call (FUSE): a warm index, "
        "and the first look of a cold one",
        f"{warm:.2f} s ({count:,} runs), {cold:.2f} s ({page:,} runs; all after {read_s:.0f} s)",
        f"< {BOUND_S:g} s each, first page of {PAGE}",
        max(warm, cold) < BOUND_S and page >= PAGE and count == arguments.runs,
    )


if __name__ == "__main__":
    main()
