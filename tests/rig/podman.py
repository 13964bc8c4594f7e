"""Images for Podman, made from Debian's packages, for a machine without a registry of images.

    python tests/rig/podman.py build       # as root; a few minutes
    python tests/rig/podman.py base        # the same
    python tests/rig/podman.py remove

``build`` makes Debian's base system with the libraries that Isaac Lab needs. The image has no Python. A container gets
the interpreter and its packages from this machine, read-only, as on a cluster that shares software in a folder. So the
image is small, and it always runs the code under test.

``base`` makes a stand-in for the public image of Python on which the recipes of ``rlnb containers write`` are built:
the same Debian, with this machine's Python 3.12 in ``/usr/local``. ``benchmarks/images.py`` builds the recipes on it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import debian

IMAGE = "localhost/rlnb-rig"
"""Name of the image without Python."""
BASE = "localhost/rlnb-rig-python"
"""Name of the image with Python, and nothing else."""
SUITE = "bookworm"
PROGRAMS = {"podman": "podman", "runc": "runc", "catatonit": "catatonit", "debootstrap": "debootstrap"}
"""Required programs, and the Debian package of each."""
LIBRARIES = (
    *(
        "git",
        "libssl3",
        "libffi8",
        "libsqlite3-0",
        "libexpat1",
        "libuuid1",
        "libgomp1",
        "libgl1",
        "libglu1-mesa",
        "libegl1",
    ),
    *("libx11-6", "libxt6", "libsm6", "libice6", "libglib2.0-0"),
)
"""Packages of the libraries that Python and Isaac Lab load, and of git, which rsl_rl calls."""
PYTHON_LIBRARIES = ("libbz2-1.0", "libexpat1", "libffi8", "libncursesw6", "libreadline8", "libsqlite3-0", "libssl3")
"""Packages of the libraries that Python itself loads."""
REPOSITORY = Path(__file__).parents[2]


def build() -> None:
    """Make the image without Python anew."""
    with tempfile.TemporaryDirectory(prefix="rlnb-image-") as name:
        root = Path(name, "root")
        _bootstrap(root, LIBRARIES)
        _import(root, IMAGE)


def build_base() -> None:
    """Make the image with Python anew. Like the public one, it has no packages, no tests and no bytecode."""
    with tempfile.TemporaryDirectory(prefix="rlnb-image-") as name:
        root = Path(name, "root")
        _bootstrap(root, PYTHON_LIBRARIES)
        home, local = Path(sys.base_prefix), root / "usr/local"
        ignored = shutil.ignore_patterns("__pycache__", "site-packages", "test", "tests", "config-3*")
        shutil.copytree(home / "lib/python3.12", local / "lib/python3.12", ignore=ignored, dirs_exist_ok=True)
        (local / "lib/python3.12/site-packages").mkdir()
        for library in (home / "lib").glob("libpython3*.so*"):
            shutil.copy2(library, local / "lib", follow_symlinks=False)
        shutil.copy2(home / "bin/python3.12", local / "bin")
        subprocess.run(["chroot", str(root), "/sbin/ldconfig"], check=True)
        _import(root, BASE)


def pip_access(folder: Path) -> list[str]:
    """Return arguments of ``podman build`` with which its pip finds what this machine's pip finds.

    Args:
        folder: Folder for the configuration, which the build gets as a secret.
    """
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    )
    values = dict(re.findall(r"^[\w:]+\.([\w-]+)='(.*)'$", listing.stdout, re.MULTILINE))
    path = folder / "pip.conf"
    path.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in values.items()))
    named = [Path(name) for value in values.values() for name in re.findall(r"(?:^|\s)(?:file://)?(/\S+)", value)]
    # The files of an index on disk are not below its list of names.
    places = {name if name.is_file() else Path(*name.parts[:3]) for name in named if name.exists()}
    return [f"--secret=id=pip.conf,src={path}", *(f"--volume={place}:{place}:ro" for place in sorted(places))]


def _bootstrap(root: Path, packages: Sequence[str]) -> None:
    """Make Debian's base system in a folder.

    Raises:
        RuntimeError: A program is missing.
    """
    if lacking := debian.missing(PROGRAMS):
        raise RuntimeError(f"The image needs the Debian packages {', '.join(lacking)}.")
    argv = [debian.program("debootstrap"), "--variant=minbase", f"--include={','.join(packages)}"]
    subprocess.run([*argv, SUITE, str(root), _mirror()], check=True, stdout=subprocess.DEVNULL)


def _import(root: Path, image: str) -> None:
    """Make an image of a folder.

    Raises:
        RuntimeError: The folder cannot be read.
    """
    without = ("--exclude=./var/cache/apt/*.bin", "--exclude=./var/cache/apt/archives/*.deb")
    tar = subprocess.Popen(["tar", "-C", str(root), *without, "-c", "."], stdout=subprocess.PIPE)
    subprocess.run(["podman", "import", "--quiet", "-", image], check=True, stdin=tar.stdout)
    if tar.wait():
        raise RuntimeError(f"tar could not read {root}.")


def missing(image: str = IMAGE) -> str:
    """Return why no container of an image can be started here; empty if one can."""
    if not debian.program("podman"):
        return "Podman is not installed here"
    done = subprocess.run(["podman", "image", "exists", image], check=False, capture_output=True)
    how = f"{Path(__file__).relative_to(REPOSITORY)} build" if image == IMAGE else "benchmarks/images.py dist"
    return f"the image is not built: python {how}" if done.returncode else ""


def write_settings(path: Path, *, shared: bool = True) -> None:
    """Write a ``containers.conf`` that works here.

    Args:
        path: File to write. CONTAINERS_CONF names it.
        shared: Whether to bind the interpreter, its packages and rlnb read-only, as a site would.
    """
    entries = filter(None, [*os.environ.get("PYTHONPATH", "").split(":"), *sys.path])
    folders = {REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), *map(Path, entries)}
    volumes = [f"{folder}:{folder}:ro" for folder in sorted(folders) if _outermost(folder, folders)]
    env = [f"PATH={Path(sys.prefix, 'bin')}:/usr/bin:/bin", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"]
    binds = f"volumes = {json.dumps(volumes)}\nenv = {json.dumps(env)}\n" if shared else ""
    path.write_text(
        f"[containers]\n{binds}"
        'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n'  # a virtual machine may not raise its limits
        '[engine]\nruntime = "runc"\n'  # crun refuses a machine with both versions of cgroups
    )


def _outermost(folder: Path, folders: set[Path]) -> bool:
    """Return whether a folder exists and is below none of the others."""
    return folder.is_dir() and folder != Path("/") and not any(parent in folders for parent in folder.parents)


def _mirror() -> str:
    """Return the address from which this machine gets Debian's packages."""
    argv = ["apt-get", "indextargets", "--format", "$(SITE)", f"Codename: {SUITE}"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["build", "base", "remove"])
    action = parser.parse_args().action
    if action == "remove":
        subprocess.run(["podman", "rmi", "--force", "--ignore", IMAGE, BASE], check=True)
    elif action == "base":
        build_base()
    else:
        build()


if __name__ == "__main__":
    main()
