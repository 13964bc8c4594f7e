"""Rehearses the tests and the benchmarks of a GPU on a CPU: does each part run to its end, and write every row?

    python benchmarks/rehearsal.py [--minutes 5] [PART ...]    # such as test-1 bench-3

Each part runs as on a GPU, with smaller sizes, and writes its rows into a file of its own. Then one is killed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from results import record, rows_of

REPO = Path(__file__).parents[1]
PARTS = (*(f"test-{number}" for number in range(1, 5)), *(f"bench-{number}" for number in range(1, 7)))


def command(part: str, minutes: float) -> list[str]:
    kind, _, number = part.partition("-")
    return ["make", f"{kind}-gpu", "DEVICE=cpu", f"PART={number}", f"MINUTES={minutes}", f"PYTHON={sys.executable}"]


def values(file: Path) -> list[tuple[str, str]]:
    """Return the name and the value of each row of a file."""
    rows = [row.removeprefix("| ").split(" | ") for row in rows_of(file)] if file.exists() else []
    return [(name, value) for name, value, *_ in rows]


def prewarm(part: str, minutes: float, folder: Path) -> tuple[bool, int, float]:
    """Run a part; return whether it ended well and measured everything, the number of its rows, and its minutes."""
    file, begin_s = folder / f"{part}.md", time.monotonic()
    with open(folder / f"{part}.log", "wb") as log:
        done = subprocess.run(
            command(part, minutes),
            cwd=REPO,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "RLNB_RESULTS": str(file)},
            check=False,
        )
    took_min = (time.monotonic() - begin_s) / 60.0
    missing = [f"{name}: {value}" for name, value in values(file) if "not measured" in value or "not run" in value]
    print(f"{part}: status {done.returncode}, {len(values(file))} rows, {took_min:.1f} min", *missing, sep="\n  ")
    return done.returncode == 0 and not missing, len(values(file)), took_min


def killed(part: str, folder: Path) -> int:
    """Kill a part with all its processes once it has a row that is no time; return the number of its rows then."""
    file = folder / f"{part}-killed.md"
    environment = {**os.environ, "RLNB_RESULTS": str(file)}
    process = subprocess.Popen(
        command(part, 5.0), cwd=REPO, env=environment, start_new_session=True, stdout=subprocess.DEVNULL
    )
    while process.poll() is None and not [name for name, _ in values(file) if not name.endswith(": time")]:
        time.sleep(0.5)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return len([name for name, _ in values(file) if not name.endswith(": time")])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=6.0, help="of each part")
    parser.add_argument("parts", nargs="*", default=PARTS)
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="rlnb-rehearsal-"))
    print(f"Rows and logs: {folder}")
    done = {part: prewarm(part, options.minutes, folder) for part in options.parts}
    kept = killed("bench-6", folder)
    whole = [part for part, (good, _, _) in done.items() if good]
    rows, minutes = (sum(values) for values in list(zip(*done.values(), strict=True))[1:])
    record(
        "rehearsal of make test-gpu and make bench-gpu on a CPU",
        f"{len(whole)} of {len(done)} parts ran to their ends and wrote all rows, {rows} in {minutes:.0f} min; "
        f"a part that was killed kept {kept}",
        "every part, every row; a killed part keeps its rows",
        len(whole) == len(PARTS) and kept > 0,
    )


if __name__ == "__main__":
    main()
