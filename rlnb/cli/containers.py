"""``rlnb containers``: write the recipes of container images, together with the wheels that they install."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from rlnb.cli import screen
from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.machine.packages import EXTENSION, origin
from rlnb.version import __version__

RECIPES = Path(__file__).absolute().parent / "recipes"
WORKER, NOTEBOOK = "Containerfile.worker", "Containerfile.notebook"
"""The recipe of the first image, and the one that adds JupyterLab and the panel of runs to it."""
CONSTRAINTS = "constraints.txt"
"""File of a folder of wheels. It names the wheel of each package of ours, and pins all other packages."""
_WHEEL = re.compile(r"^(?P<name>rlnb[\w-]*) @ file://\$\{PWD\}/(?P<file>[\w.+-]+\.whl)$", re.MULTILINE)
_MAKE = "In a checkout of rlnb: make wheels extension-wheel. Then: --wheels CHECKOUT/dist"

containers_app = typer.Typer(no_args_is_help=True, help="Write the recipes of container images.")


@containers_app.callback()
def containers() -> None:
    """Write the recipes of container images."""


@containers_app.command()
def write(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the recipes and the wheels.")],
    wheels: Annotated[
        Path | None,
        typer.Option(metavar="DIST", help="Folder of the wheels; by default the one that rlnb was installed from."),
    ] = None,
) -> None:
    """Write recipes for a worker, a notebook and Apptainer, with the wheels that they install."""
    if NOTEBOOK not in write_recipes(folder, wheels):
        screen.say(f"not written: {NOTEBOOK}, which needs the wheel of {EXTENSION}. {_MAKE}", stderr=True)
    screen.say(f"{folder} is ready. Next:", stderr=True)
    place = shlex.quote(str(folder))
    screen.say(f"cd {place} && podman build --tag rlnb-worker --file {WORKER} .")


def write_recipes(folder: Path, wheels: Path | None = None) -> list[str]:
    """Write the recipes and the wheels into a folder; return the names of the recipes.

    Args:
        folder: Folder to write to. Other files in it are kept.
        wheels: Folder that ``make wheels`` has filled; None is the one that rlnb was installed from.

    Raises:
        CheckError: There are no wheels of this version, or a file exists and differs. Nothing was written.
        RlnbError: The folder cannot be written.
    """
    source = wheels.absolute() if wheels is not None else _wheels_folder()
    ours = _wheels_of(source) if source is not None else {}
    problems = [*_check_wheels(source, ours)]
    files = _recipes(with_notebook=EXTENSION in ours)
    names = sorted(files)
    if source is not None and not problems:
        files |= {f"wheels/{name}": source / name for name in (CONSTRAINTS, *sorted(ours.values()))}
    problems += _check_files(folder, files)
    if problems:
        raise CheckError(f"recipes in {folder}", problems)
    try:
        for name, path in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(path.read_bytes())
    except OSError as exc:
        raise RlnbError(f"{folder} cannot be written: {exc}. Use another folder.") from exc
    return names


def _recipes(*, with_notebook: bool) -> dict[str, Path]:
    """Return the files of the recipes, by name."""
    paths = {path.name: path for path in sorted(RECIPES.iterdir()) if path.is_file()}
    return paths if with_notebook else {name: path for name, path in paths.items() if name != NOTEBOOK}


def _wheels_folder() -> Path | None:
    """Return the folder of wheels that rlnb was installed from, or that its checkout makes; None for an index."""
    source, editable = origin()
    return source / "dist" if source is not None and editable else source


def _wheels_of(folder: Path) -> Mapping[str, str]:
    """Return the names of our packages in a folder of wheels, each with its file. It is empty without constraints."""
    try:
        text = (folder / CONSTRAINTS).read_text(encoding="utf-8")
    except OSError:
        return {}
    return {match["name"]: match["file"] for match in _WHEEL.finditer(text)}


def _check_wheels(folder: Path | None, ours: Mapping[str, str]) -> Iterator[Problem]:
    if folder is None:
        yield Problem(what="rlnb was installed from an index, so its wheels are in no folder.", fix=_MAKE)
        return
    if "rlnb" not in ours:
        what = f"{folder} is not a folder of rlnb's wheels: its {CONSTRAINTS} is missing, or names none of them."
        yield Problem(what=what, fix=_MAKE)
        return
    for file in ours.values():
        if not (folder / file).is_file():
            yield Problem(what=f"{folder / file} does not exist, but {CONSTRAINTS} names it.", fix=_MAKE)
    version = ours["rlnb"].split("-")[1]
    if version != __version__:
        yield Problem(
            what=f"{folder} has rlnb {version}. The version of this installation is {__version__}.", fix=_MAKE
        )


def _check_files(folder: Path, files: Mapping[str, Path]) -> Iterator[Problem]:
    for name, path in files.items():
        place = folder / name
        if place.is_symlink() or (place.exists() and (not place.is_file() or place.read_bytes() != path.read_bytes())):
            yield Problem(
                what=f"{place} exists and differs from the file to write.", fix="Delete it, or use another folder."
            )
