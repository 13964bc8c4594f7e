"""Command line of the chaos suite."""

from __future__ import annotations

import argparse
import collections
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from slurm import Slurm

import rlnb
from chaos.cluster import FAULTS_ON_SLURM, on_slurm
from chaos.episode import episode
from chaos.faults import FAULTS
from chaos.points import VERBS, points
from chaos.resumes import tries
from chaos.world import ECHO, ISAACLAB, Violation, as_line


def main(argv: Sequence[str] | None = None) -> int:
    """Run a part of the suite; return 1 if a rule did not hold."""
    parser = argparse.ArgumentParser(prog="chaos", description="Short trainings that are hit at random moments.")
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("episodes", help="faults in episodes")
    part.add_argument("--seeds", default="1:20", help="first and last seed")
    part.add_argument("--only", nargs="+", choices=FAULTS, default=[*FAULTS], metavar="FAULT")
    part.add_argument("--but", nargs="+", choices=FAULTS, default=[], metavar="FAULT")
    part.add_argument("--disk", action="store_true", help="a small disk for each episode")
    part.add_argument("--isaaclab", action="store_true", help="trainings of Isaac Lab instead of the echo library")
    part.add_argument("--slurm", action="store_true", help="trainings on a Slurm of this machine")
    part.add_argument("--length", type=int, default=1, help="factor of the trainings' iterations")
    part = parts.add_parser("points", help="a kernel is killed before each of its changes")
    part.add_argument("--verbs", nargs="+", choices=VERBS, default=list(VERBS))
    part = parts.add_parser("resumes", help="several processes resume one run at once")
    part.add_argument("--tries", type=int, default=20)
    part.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    logging.disable(logging.WARNING)
    folder = Path(tempfile.mkdtemp(prefix="rlnb-chaos-"))
    begin_s = time.monotonic()
    try:
        text, violations = _run(asked, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{text}, {len(violations)} violations, {time.monotonic() - begin_s:.0f} s")
    return 1 if violations else 0


def _run(asked: argparse.Namespace, folder: Path) -> tuple[str, Sequence[object]]:
    if asked.part == "resumes":
        os.environ.update(RLNB_ROOT=str(folder / "root"), RLNB_QUEUE=str(folder / "queue"))
        rlnb.options.root, rlnb.options.warm = folder / "root", False
        done = tries(folder / "root", asked.tries, asked.seed)
        print(*done.violations, sep="\n")
        return f"{done.count} tries with {done.processes} processes", done.violations
    if asked.part == "points":
        count, violations = points(folder, tuple(asked.verbs))
        print(*map(as_line, violations), sep="\n")
        return f"{count} kernels killed", violations
    return _episodes(asked, folder)


def _episodes(asked: argparse.Namespace, folder: Path) -> tuple[str, Sequence[Violation]]:
    counts: collections.Counter[str] = collections.Counter()
    violations: list[Violation] = []
    cluster = Slurm(Path(tempfile.mkdtemp(prefix="rlnb-slurm-")), 2) if asked.slurm else None
    subject = ISAACLAB if asked.isaaclab else ECHO
    if cluster is not None:
        cluster.up()
        subject = on_slurm(cluster)
    possible = FAULTS_ON_SLURM if asked.slurm else asked.only
    names = [name for name in asked.only if name in possible and name not in asked.but]
    first, _, last = asked.seeds.partition(":")
    for seed in range(int(first), int(last or first) + 1):
        if cluster is not None:
            cluster.up()  # what a fault has stopped
        of_seed = episode(folder, seed, names, counts, subject=subject, disk=asked.disk, length=asked.length)
        print(f"seed {seed}: {counts.total()} faults", *map(as_line, of_seed), sep="\n", flush=True)
        violations += of_seed
    if cluster is not None:
        cluster.down()
    return f"{counts.total()} faults {dict(counts)}", violations


if __name__ == "__main__":
    raise SystemExit(main())
