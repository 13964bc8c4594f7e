"""What ``make release`` does with the wheels: tie their names to their files, install them anew, and use them.

python tests/rig/release.py constraints dist
python tests/rig/release.py check dist outputs/release
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
from pathlib import Path

from rlnb.machine.packages import PIP

REPO = Path(__file__).parents[2]
OURS = re.compile(r"rlnb\b", re.IGNORECASE)
PACKAGES = ("rlnb[all]", "rlnb-jupyterlab", "rlnb-echo", "rlnb-wandb", "rlnb-mlflow", "rlnb-trackio")
CONSTRAINTS = ("constraints.txt", "constraints-isaacsim.txt")
OVERRIDES = "overrides-isaacsim.txt"


def names(folder: Path) -> dict[str, Path]:
    """Return the name of each wheel in a folder, with its file."""
    return {wheel.name.partition("-")[0].replace("_", "-"): wheel for wheel in sorted(folder.glob("*.whl"))}


def write_constraints(folder: Path) -> list[Path]:
    """Write the constraints of a folder of wheels: the third-party pins, and a file for each name of ours.

    ``${PWD}`` is the folder that pip is started in. pip and uv replace it, so the folder can be moved. The second file
    is for environments with Isaac Sim, and the overrides for uv are copied beside it.
    """
    lines = [f"{name} @ file://${{PWD}}/{wheel.name}" for name, wheel in names(folder).items()]
    paths = [folder / name for name in CONSTRAINTS]
    for path in paths:
        pins = (REPO / path.name).read_text(encoding="utf-8")
        path.write_text(pins + "\n".join(lines) + "\n", encoding="utf-8")
    shutil.copy(REPO / OVERRIDES, folder)
    return [*paths, folder / OVERRIDES]


def install(folder: Path, environment: Path, packages: tuple[str, ...], *options: str) -> Path:
    """Make an environment and install packages into it with pip, as docs/installing.md says. Return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", PIP], check=True)
    shell = {**os.environ, "PWD": str(folder)}
    subprocess.run([*pip, *options, "--constraint", "constraints.txt", *packages], cwd=folder, env=shell, check=True)
    return python


def origins(python: Path) -> dict[str, str]:
    """Return the address that each installed package of ours came from, empty where that is an index."""
    listing = subprocess.run([str(python), "-m", "pip", "inspect"], check=True, capture_output=True, text=True)
    packages = json.loads(listing.stdout)["installed"]
    return {
        package["metadata"]["name"]: package.get("direct_url", {}).get("url", "")
        for package in packages
        if OURS.match(package["metadata"]["name"])
    }


def check(folder: Path, out: Path) -> None:
    """Install every wheel into a new environment, and run the doctor and the demo there.

    Raises:
        SystemExit: A package of ours is missing, or came from another place.
    """
    with tempfile.TemporaryDirectory(prefix="rlnb-release-") as temporary:
        python = install(folder, Path(temporary) / "environment", PACKAGES)
        sources = origins(python)
        strangers = {name: url for name, url in sources.items() if not url.startswith(folder.as_uri())}
        if strangers or {*sources} != {*names(folder)}:
            sys.exit(f"These packages are not those of {folder}: {strangers or {*names(folder)} ^ {*sources}}")
        print(f"{len(sources)} packages, all from {folder}: {', '.join(sorted(sources))}")
        elsewhere = {"cwd": temporary, "check": True}  # a checkout in the working folder would be imported instead
        subprocess.run([str(python.with_name("jupyter")), "labextension", "list"], **elsewhere)
        subprocess.run([str(python.with_name("rlnb")), "doctor"], cwd=temporary, check=False)  # a fault is no defect
        subprocess.run([str(python.with_name("rlnb")), "demo", "--out", str(out)], **elsewhere)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["constraints", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?", default=Path("outputs/release"))
    arguments = parser.parse_args()
    if arguments.command == "constraints":
        print(*write_constraints(arguments.folder.absolute()), sep="\n")
    else:
        check(arguments.folder.absolute(), arguments.out.absolute())


if __name__ == "__main__":
    main()
