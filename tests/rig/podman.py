"""An image for Podman: Debian's base system with the libraries that Isaac Lab needs, made from Debian's packages.

    python tests/rig/podman.py build       # as root; a few minutes
    python tests/rig/podman.py remove

The image has no Python. A container gets the interpreter and its packages from this machine, read-only, as on a cluster
that shares software in a folder. So the image is small, and it always runs the code under test.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import debian

IMAGE = "localhost/rlnb-rig"
"""Name of the image."""
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
REPOSITORY = Path(__file__).parents[2]


def build() -> None:
    """Make the image anew.

    Raises:
        RuntimeError: A program is missing.
    """
    if lacking := debian.missing(PROGRAMS):
        raise RuntimeError(f"The image needs the Debian packages {', '.join(lacking)}.")
    with tempfile.TemporaryDirectory(prefix="rlnb-image-") as name:
        root = Path(name, "root")
        argv = [debian.program("debootstrap"), "--variant=minbase", f"--include={','.join(LIBRARIES)}"]
        subprocess.run([*argv, SUITE, str(root), _mirror()], check=True, stdout=subprocess.DEVNULL)
        tar = subprocess.Popen(["tar", "-C", str(root), "--exclude=./var/cache", "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(["podman", "import", "--quiet", "-", IMAGE], check=True, stdin=tar.stdout)
        if tar.wait():
            raise RuntimeError(f"tar could not read {root}.")


def missing() -> str:
    """Return why no container can be started here; empty if one can."""
    if not debian.program("podman"):
        return "Podman is not installed here"
    done = subprocess.run(["podman", "image", "exists", IMAGE], check=False, capture_output=True)
    return f"the image is not built: python {Path(__file__).relative_to(REPOSITORY)} build" if done.returncode else ""


def write_settings(path: Path) -> None:
    """Write a ``containers.conf`` that binds the interpreter, its packages and rlnb read-only, as a site would.

    Args:
        path: File to write. CONTAINERS_CONF names it.
    """
    entries = filter(None, [*os.environ.get("PYTHONPATH", "").split(":"), *sys.path])
    folders = {REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), *map(Path, entries)}
    volumes = [f"{folder}:{folder}:ro" for folder in sorted(folders) if _outermost(folder, folders)]
    env = [f"PATH={Path(sys.prefix, 'bin')}:/usr/bin:/bin", f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"]
    path.write_text(
        f"[containers]\nvolumes = {json.dumps(volumes)}\nenv = {json.dumps(env)}\n"
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
    parser.add_argument("action", choices=["build", "remove"])
    if parser.parse_args().action == "build":
        build()
    else:
        subprocess.run(["podman", "rmi", "--force", IMAGE], check=True)


if __name__ == "__main__":
    main()
