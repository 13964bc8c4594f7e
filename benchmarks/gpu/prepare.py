"""Prepares a GPU machine without internet from the pieces that ``make gpu-pieces`` wrote.

    python3 prepare.py [--to FOLDER] [FOLDER OF PIECES ...]

Needs Python 3.12 and nothing else. All pieces have to be there, in one folder or in several; the first is that of this
file. It writes the checkout of rlnb and the packages below FOLDER (``rlnb-gpu`` here), and a command ``python`` that
uses them:

    cd rlnb-gpu/rlnb && make test-gpu PYTHON=../python
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

INDEX = "pieces.json"
"""Names, sizes in bytes and SHA-256 sums of the pieces, in their order."""
PYTHON = """#!/bin/sh
# Python with rlnb's packages and kernels, which prepare.py wrote.
here={folder}
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/packages"
export PATH="$here/packages/bin:$PATH"
export RLNB_PREBUILT="$here/prebuilt"
exec {python} "$@"
"""


class Joined(io.RawIOBase):
    """The contents of files one after another, to be read once."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._parts = self._read(paths)
        self._rest = b""

    def _read(self, paths: Sequence[Path]) -> Iterator[bytes]:
        for path in paths:
            with open(path, "rb") as file:
                while part := file.read(1 << 20):
                    yield part

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def checked(folders: Sequence[Path]) -> list[Path]:
    """Return the pieces in their order.

    Raises:
        SystemExit: Some are missing or damaged; it names all of them.
    """
    index = json.loads((folders[0] / INDEX).read_text())
    found, problems = [], []
    for piece in index:
        paths = [folder / piece["name"] for folder in folders if (folder / piece["name"]).exists()]
        if not paths:
            problems.append(f"{piece['name']} is missing")
        elif hashlib.sha256(paths[0].read_bytes()).hexdigest() != piece["sha256"]:
            problems.append(f"{paths[0]} is damaged or incomplete. Copy it again.")
        else:
            found.append(paths[0])
    if problems:
        raise SystemExit("\n".join(problems))
    return found


def prepare(folders: Sequence[Path], target: Path) -> None:
    """Unpack the pieces, install the wheels, and write the command."""
    if sys.version_info[:2] != (3, 12):
        raise SystemExit(f"The packages are for Python 3.12, and this is {sys.version.split()[0]}.")
    pieces = checked(folders)
    target.mkdir(parents=True)
    with tarfile.open(fileobj=io.BufferedReader(Joined(pieces)), mode="r|") as archive:
        archive.extractall(target, filter="data")
    wheels = sorted((target / "wheels").glob("*.whl"))
    (pip,) = (target / "wheels").glob("pip-*.whl")
    install = [sys.executable, f"{pip}/pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    install += ["--no-cache-dir", "--disable-pip-version-check", "--root-user-action", "ignore"]
    subprocess.run([*install, "--target", target / "packages", *wheels], check=True)
    shutil.rmtree(target / "wheels")
    command = target / "python"
    command.write_text(PYTHON.format(folder=target.resolve(), python=sys.executable))
    command.chmod(0o755)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, default=Path("rlnb-gpu"))
    parser.add_argument("folders", nargs="*", type=Path, help="further folders with pieces")
    arguments = parser.parse_args()
    if arguments.to.exists():
        raise SystemExit(f"{arguments.to} exists already. Use --to for another folder, or remove it.")
    prepare([Path(os.path.abspath(__file__)).parent, *arguments.folders], arguments.to)
    print(f"Prepared. Next: cd {arguments.to / 'rlnb'} && make test-gpu PYTHON=../python")


if __name__ == "__main__":
    main()
