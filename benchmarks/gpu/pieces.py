"""What a GPU machine without internet needs, in archives of a given size.

    python -m gpu.pieces FOLDER --piece-mib 60 [--arch 90] [--without torch 'nvidia-*' ...]

with benchmarks/ on PYTHONPATH, which ``make gpu-pieces`` sets.

Makes wheels of all packages of this environment, in the same versions, of rlnb and of its plugins, and puts them with
this checkout, the robots that rlnb builds, and, for ``--arch``, the compiled kernels into one archive, which it cuts.
``--without`` leaves out what the machine has; the list of sizes tells what is worth it. ``prepare.py``, which is
written beside the pieces, does the rest on the machine.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu import prepare

REPO = Path(__file__).parents[2]
LEFT_OUT = ("uv", "ruff", "mypy", "sphinx*", "playwright", "import-linter")
"""Packages that nothing on a GPU machine needs."""
MIB = 2**20


class Cut:
    """A file to write to that is cut into pieces.

    Args:
        folder: Folder of the pieces.
        size: Largest size of a piece, in bytes.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._size = folder, size
        self._file: io.BufferedWriter | None = None
        self._hash = hashlib.sha256()
        self.pieces: list[dict[str, str | int]] = []

    def write(self, data: bytes) -> int:
        """Write to the newest piece, and begin others as they are needed."""
        view = memoryview(data)
        while view:
            if self._file is None:
                self.pieces.append({"name": f"piece-{len(self.pieces):03d}", "bytes": 0})
                self._file = io.BufferedWriter(io.FileIO(self._folder / str(self.pieces[-1]["name"]), "w"))
                self._hash = hashlib.sha256()
            part = view[: self._size - self._file.tell()]
            self._file.write(part)
            self._hash.update(part)
            view = view[len(part) :]
            if self._file.tell() == self._size:
                self.close()
        return len(data)

    def close(self) -> None:
        """End the newest piece."""
        if self._file is not None:
            self.pieces[-1].update(bytes=self._file.tell(), sha256=self._hash.hexdigest())
            self._file.close()
            self._file = None


def pack(folder: Path, piece_mib: float, files: Sequence[tuple[Path, str]]) -> None:
    """Write files into pieces, with their index and the script that unpacks them.

    Args:
        folder: Folder of the pieces, which has no others yet.
        piece_mib: Largest size of a piece.
        files: Paths, each with its name in the archive. What is in a folder goes with it.
    """
    folder.mkdir(parents=True)
    cut = Cut(folder, int(piece_mib * MIB))
    with tarfile.open(fileobj=cut, mode="w|") as archive:  # type: ignore[call-overload]
        for path, name in files:
            archive.add(path, name)
    cut.close()
    (folder / prepare.INDEX).write_text(json.dumps(cut.pieces, indent=1))
    shutil.copy(prepare.__file__, folder)


def packages(without: Sequence[str]) -> Iterator[str]:
    """Yield the requirement of each package of this environment, without our own and those to leave out."""
    for package in importlib.metadata.distributions():
        name = package.metadata["Name"].lower().replace("_", "-")
        if not any(fnmatch.fnmatch(name, pattern) for pattern in ("rlnb", "rlnb-*", *LEFT_OUT, *without)):
            yield f"{name}=={package.version}"


def wheels(folder: Path, without: Sequence[str]) -> None:
    """Make the wheels, and print the sizes of the largest."""
    names = sorted({*packages(without), f"pip=={importlib.metadata.version('pip')}"})
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, "--wheel-dir", folder, *names], check=True)
    subprocess.run([*pip, "--wheel-dir", folder, REPO, *sorted(REPO.glob("plugins/*"))], check=True)
    sizes = sorted(((path.stat().st_size / MIB, path.name) for path in folder.iterdir()), reverse=True)
    print(f"{len(sizes)} wheels, {sum(size for size, _ in sizes):,.0f} MiB. The largest:")
    print("\n".join(f"{size:8.0f} MiB  {name}" for size, name in sizes[:12]))


def checkout(folder: Path) -> None:
    """Copy the files of this checkout, with its changes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPO,
        stdout=subprocess.PIPE,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (REPO / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPO / name, target)


def prebuilt(folder: Path, arch: int | None) -> None:
    """Make the robots, and compile the kernels for an architecture."""
    from rlnb.worker.assets import packs

    packs.build()
    shutil.copytree(packs.cache_folder(), folder / "rlnb")
    if arch is not None:
        environment = {**os.environ, "PYTHONPATH": str(REPO / "benchmarks")}
        argv = [sys.executable, "-m", "gpu.kernels", "--arch", str(arch), "--into", str(folder)]
        subprocess.run(argv, env=environment, check=True)
        for source in [*folder.rglob("*.cu")]:
            source.unlink()  # Warp needs the binaries only


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--piece-mib", type=float, default=60.0)
    parser.add_argument("--arch", type=int, help="of the GPU: 90 for an H100 or H200, 89 for an RTX 4090")
    parser.add_argument("--without", nargs="*", default=[], help="packages that the machine has, such as 'nvidia-*'")
    arguments = parser.parse_args()
    if arguments.folder.exists():
        raise SystemExit(f"{arguments.folder} exists already. Remove it, or name another folder.")
    with tempfile.TemporaryDirectory(prefix="rlnb-gpu-") as work:
        base = Path(work)
        checkout(base / "rlnb")
        prebuilt(base / "prebuilt", arguments.arch)
        wheels(base / "wheels", arguments.without)
        pack(arguments.folder, arguments.piece_mib, [(path, path.name) for path in sorted(base.iterdir())])
    sizes = [path.stat().st_size for path in arguments.folder.glob("piece-*")]
    print(f"{len(sizes)} pieces, {sum(sizes) / MIB:,.0f} MiB, the largest {max(sizes) / MIB:.1f} MiB")
    print(f"Copy {arguments.folder} to the machine, and there: python3 {prepare.__name__.rpartition('.')[2]}.py")


if __name__ == "__main__":
    main()
