"""Two users of one machine do the same or different things at once; neither keeps the other from anything. Needs root.

    python benchmarks/two_users.py             # all twenty rounds, about 5 minutes
    python benchmarks/two_users.py --rounds 5  # the first five: each thing beside itself

Both users are real accounts that share the temporary folder and one folder of runs, which an administrator has made as
docs/hosted.md says. Each round starts one thing of each user at the same moment. It holds if both have their results.
The parts with a simulator use real Isaac Lab on a CPU; arrays use a real Slurm.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from against_isaaclab import asset_root
from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import fixtures
import slurm
import ssh
from users import FOLDERS

USERS = ("ann", "eve")
LIMIT_S = 600.0
BEFORE = "import rlnb; task = 'Isaac-Cartpole-Direct'; small = dict(num_envs=4, max_iterations=2, device='cpu')\n"
THINGS = {
    "training": "run = rlnb.train(task, **small); run.wait(500); assert run.state == 'completed', run.error",
    "two ranks": (
        "run = rlnb.train(task, nproc_per_node=2, **small); run.wait(500); assert run.state == 'completed', run.error"
    ),
    "preview": "assert len(rlnb.preview(task, num_envs=2, device='cpu')._repr_png_()) > 10_000",
    "report": (
        "run = rlnb.train('Echo', library='echo', max_iterations=20, agent={'iteration_s': 0.01}); run.wait(200)\n"
        "assert run.id in rlnb.report(run).read_text(encoding='utf-8')"
    ),
    "array": (
        "sweep = rlnb.sweep('Echo', library='echo', space={'agent.goal': [0.1, 0.5]}, n_trials=2, max_iterations=20,\n"
        "    launcher=rlnb.slurm(nodes=1, walltime='00:10:00'), array=True)\n"
        "sweep.wait(400); assert [run.state for run in sweep.runs] == ['completed'] * 2"
    ),
}


def rounds() -> Iterator[tuple[str, str]]:
    """Yield what Ann and what Eve do: each thing beside itself, then beside each other one."""
    names = list(THINGS)
    for ahead in range(4):
        for number, name in enumerate(names):
            yield name, names[(number + ahead) % len(names)]


def begin(machine: ssh.Machine, thing: str, root: Path) -> subprocess.Popen[str]:
    """Start one thing of a user in a fresh kernel."""
    account = pwd.getpwnam(machine.user)
    kept = ("PATH", "LANG", "SLURM_CONF", "OMP_NUM_THREADS")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env |= {"HOME": str(machine.home), "USER": machine.user, "RLNB_ROOT": str(root)}
    env["LD_LIBRARY_PATH"] = str(machine.folder / "python" / "lib")
    env["JUPYTER_PATH"] = f"{sys.prefix}/share/jupyter"
    env |= {"ISAACSIM_ASSET_ROOT": os.environ["ISAACSIM_ASSET_ROOT"]}
    return subprocess.Popen(
        [str(machine.home / "venv" / "bin" / "python"), "-P", "-c", BEFORE + THINGS[thing]],
        cwd=machine.home,
        env=env,
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextlib.contextmanager
def shared_root() -> Iterator[Path]:
    """Make a folder of runs as an administrator makes it for several users, and a copy of the assets for everybody."""
    with tempfile.TemporaryDirectory(prefix="rlnb-two-users-") as name:
        Path(name).chmod(0o755)
        root = Path(name, "runs")
        for folder in (root, *(root / name for name in FOLDERS)):
            folder.mkdir()
            folder.chmod(0o1777)
        os.environ["ISAACSIM_ASSET_ROOT"] = str(shutil.copytree(asset_root(), Path(name, "assets")))
        yield root


@contextlib.contextmanager
def accounts() -> Iterator[list[ssh.Machine]]:
    """Make the two accounts, each with an interpreter that it can read."""
    with contextlib.ExitStack() as stack:
        found = []
        for name in USERS:
            found.append(ssh.Machine(Path(f"/tmp/rlnb-{name}-{os.getpid()}"), f"{name}{os.getpid()}"))
            stack.callback(found[-1].down)
            found[-1].up()
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    number = parser.parse_args().rounds
    if lacking := [*ssh.missing(), *slurm.missing()]:
        sys.exit(f"This benchmark needs {', '.join(lacking)}.")
    os.environ["OMP_NUM_THREADS"] = "1"
    held = 0
    cluster = slurm.Slurm(Path(f"/tmp/rlnb-two-{os.getpid()}"), nodes=2, port=7817)
    with accounts() as users, shared_root() as root, fixtures.running(cluster):
        chosen = list(rounds())[:number]
        for things in chosen:
            begin_s = time.monotonic()
            kernels = [begin(user, thing, root) for user, thing in zip(users, things, strict=True)]
            failed = []
            for user, thing, kernel in zip(USERS, things, kernels, strict=True):
                try:
                    said, _ = kernel.communicate(timeout=LIMIT_S)
                except subprocess.TimeoutExpired:
                    kernel.kill()
                    said = f"no end within {LIMIT_S:.0f} s"
                if kernel.returncode:
                    failed.append(f"{user}'s {thing}: {said.strip()[-1500:]}")
            held += not failed
            print(f"{' | '.join(things)}: {failed or 'both'} ({time.monotonic() - begin_s:.0f} s)", flush=True)
    if number == 20:
        what = "two users at once on one machine: trainings with one and two ranks, previews, reports, arrays"
        record(what, f"{held} of {len(chosen)} pairs, both have their results", "20 of 20", held == 20)


if __name__ == "__main__":
    main()
