"""The deep check of sound tasks, which must not find a mistake.

    python benchmarks/sound_tasks.py [TASK ...]

Without arguments, the tasks are those of Isaac Lab whose robots this machine has, up to ``MOST``.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

from results import record

import rlnb
from rlnb.plugin import Problem
from rlnb.protocol import requests
from rlnb.simulation.pool import pool

MOST = 20


def main() -> None:
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.warm = True
    names = sys.argv[1:] or pool.request(requests.Tasks()).ids
    checked: dict[str, list[Problem]] = {}
    for name in names:
        if len(checked) == MOST:
            break
        if rlnb.check(name, device="cpu"):
            continue  # its robots are not here, or it needs Isaac Sim
        begin_s = time.monotonic()
        problems = rlnb.check(name, deep=True, device="cpu")
        if errors := [problem.what for problem in problems if re.match(r"\w+Error: ", problem.what)]:
            print(f"  {name}: left out, its env cannot be made here: {errors[0].splitlines()[0]}", flush=True)
            continue
        checked[name] = problems
        print(f"  {name}: {time.monotonic() - begin_s:.0f} s", flush=True)
        for problem in checked[name]:
            print(f"    {'note' if problem.note else 'MISTAKE'}: {problem.what.splitlines()[0]}", flush=True)
    alarms = [name for name, problems in checked.items() if any(not problem.note for problem in problems)]
    notes = sum(problem.note for problems in checked.values() for problem in problems)
    record(
        "deep check of sound tasks of Isaac Lab: alarms",
        f"{len(alarms)} of {len(checked)} tasks {', '.join(alarms)}; {notes} notes",
        "0 of 20",
        not alarms and len(checked) >= MOST,
    )


if __name__ == "__main__":
    main()
