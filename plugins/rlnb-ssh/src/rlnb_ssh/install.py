"""Install rlnb on another machine, from wheels that are here, into an environment that is new there."""

from __future__ import annotations

import contextlib
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath

from rlnb import CheckError, RlnbError, __version__
from rlnb.plugin import Problem

CONSTRAINTS = "constraints.txt"
ODD = 65
"""Exit status of the script if the machine has problems."""
MOST_LINES = 30
"""Lines of the output that an error shows."""
SCRIPT = """
set -u
exec 2>&1
env=$1 base=$2
shift 2
odd=0
problem() { echo "problem: $1"; odd=1; }
if test -e "$env" || test -L "$env"; then problem "$env exists."; fi
command -v tar > /dev/null || problem "there is no tar."
command -v uv > /dev/null || "$base" -c 'import ensurepip, venv' > /dev/null 2>&1 ||
    problem "there is neither uv nor $base with venv and ensurepip."
parent=$(dirname "$env")
while ! test -e "$parent"; do parent=$(dirname "$parent"); done
test -w "$parent" || problem "$parent cannot be written."
test $odd = 0 || exit 65
set -e
mkdir -p "$(dirname "$env")"
real=$env-$(date +%Y%m%d-%H%M%S)-$$
wheels=$(mktemp -d)
trap 'rm -rf "$real" "$wheels"' EXIT
trap 'exit 1' HUP INT TERM PIPE
cd "$wheels"
export PWD
tar -xf -
if command -v uv > /dev/null; then
    uv venv --quiet --python "$base" "$real"
    uv pip install --quiet --python "$real/bin/python" --constraint constraints.txt "$@"
else
    "$base" -m venv "$real"
    "$real/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=26.1'
    "$real/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$@"
fi
"$real/bin/python" -I -c 'import rlnb'
ln -s "$real" "$env"
trap - EXIT
rm -rf "$wheels"
"""
"""Script for the machine. The environment has its name there only once it is complete."""


def install(
    reach: Callable[[Sequence[str]], Sequence[str]],
    failure: Callable[[int | None, str], Problem],
    python: str,
    wheels: Path,
    extras: Sequence[str],
    base: str,
) -> None:
    """Make an environment on the machine, and install rlnb and the plugins of this environment in it.

    Args:
        reach: Returns the command of this machine that runs a command there.
        failure: Returns why the machine cannot be reached, from an exit status and the output.
        python: Interpreter of the new environment.
        wheels: Folder of wheels here.
        extras: Extras of rlnb.
        base: Interpreter there that makes the environment.

    Raises:
        CheckError: The environment cannot be made; nothing was changed there.
        RlnbError: The installation has failed; nothing of it is left there.
    """
    packages = versions()
    if problems := [*_odd(python, wheels, packages)]:
        raise CheckError("rlnb.ssh(...).install(...)", problems)
    environment = str(PurePosixPath(python).parent.parent)
    rlnb = f"rlnb[{','.join(extras)}]" if extras else "rlnb"
    names = [rlnb, *(name for name in packages if name != "rlnb")]
    code, output = _send(reach(["sh", "-c", SCRIPT, "sh", environment, base, *names]), wheels)
    lines = [line for line in output.splitlines() if line.strip()]
    if code == ODD:
        fix = "Use python= with the path of a new environment, and base= with an interpreter of that machine."
        texts = [line.removeprefix("problem: ") for line in lines if line.startswith("problem: ")]
        raise CheckError("rlnb.ssh(...).install(...)", [Problem(what=text, fix=fix) for text in texts])
    if code == 255:
        raise CheckError("rlnb.ssh(...).install(...)", [failure(code, output)])
    if code:
        end = "\n".join(lines[-MOST_LINES:])
        raise RlnbError(f"The installation has failed with status {code}, and nothing of it is left there.\n{end}")


def versions() -> Mapping[str, str]:
    """Return the versions of rlnb and of the packages of its plugins here, by name."""
    plugins = {point.dist.name: point.dist.version for point in metadata.entry_points(group="rlnb") if point.dist}
    return {"rlnb": __version__} | {name: plugins[name] for name in sorted(plugins) if name != "rlnb"}


def wheel_of(folder: Path, name: str, version: str) -> Path | None:
    """Return the wheel of a package in a folder; None if there is none of this version."""
    return next(iter(sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))), None)


def _odd(python: str, wheels: Path, packages: Mapping[str, str]) -> Iterator[Problem]:
    path = PurePosixPath(python)
    if len(path.parts) < 4 or path.parts[0] not in ("/", "~") or path.parent.name != "bin" or " -" in python:
        what = f"python={python!r} is not the path of an interpreter in an environment."
        yield Problem(what=what, fix='Use python="~/rlnb-venv/bin/python".')
    fix = "Run `make wheels` in a checkout of this version, and pass the folder dist."
    missing = [name for name, version in packages.items() if wheel_of(wheels, name, version) is None]
    if missing:
        yield Problem(what=f"{wheels} has no wheels of the versions here of {', '.join(missing)}.", fix=fix)
    if not (wheels / CONSTRAINTS).is_file():
        yield Problem(what=f"{wheels} has no {CONSTRAINTS}.", fix=fix)


def _send(argv: Sequence[str], wheels: Path) -> tuple[int, str]:
    """Run the script with the folder of wheels as its input; return its exit status and its output."""
    files = [*sorted(wheels.glob("*.whl")), wheels / CONSTRAINTS]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with (
            contextlib.suppress(BrokenPipeError),  # the machine refuses, and its output says why
            tarfile.open(fileobj=process.stdin, mode="w|") as archive,
        ):
            for path in files:
                archive.add(path, arcname=path.name)
        with contextlib.suppress(BrokenPipeError):  # of what was left to send
            process.stdin.close()
        output = process.stdout.read().decode(errors="replace")
    return process.returncode, output
