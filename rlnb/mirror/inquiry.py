"""The check of a run on the machine where it would be started, and the problems that it sends back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rlnb.errors import CheckError, Problem, RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.registry import package_versions
from rlnb.mirror.frames import Frame
from rlnb.settings import Root
from rlnb.spec import Json, Manifest
from rlnb.storage import access
from rlnb.version import __version__


def answer(root: Root, manifest: Manifest) -> Frame:
    """Return the versions of this machine, and every problem that the run would have here.

    Args:
        root: Folder of runs on this machine.
        manifest: The run, with its launcher on this machine.
    """
    problems = entries_of(_find(root, manifest))
    return Frame(kind="answer", data={"python": sys.executable, "versions": dict(versions()), "problems": problems})


def entries_of(problems: Iterable[Problem]) -> list[Json]:
    """Return problems as a frame carries them."""
    return [{"what": str(problem.what), "fix": str(problem.fix)} for problem in problems]


def problems_of(frame: Frame) -> Sequence[Problem]:
    """Return the problems that a frame from the other machine carries."""
    entries = frame.data.get("problems")
    items = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    return [Problem(what=str(entry.get("what", "")), fix=str(entry.get("fix", ""))) for entry in items]


def versions() -> dict[str, str]:
    """Return the versions of rlnb and of the packages of its plugins, by name."""
    return {"rlnb": __version__, **package_versions()}


def _find(root: Root, manifest: Manifest) -> Iterator[Problem]:
    existing = next(folder for folder in (root.path, *root.path.parents) if os.path.exists(folder))
    fix = "Use root= with a folder of yours on that machine."
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Problem(what=f"the folder {root.path} cannot be written.", fix=fix)
    for problem in access.sharing_problems(root.path):
        team = 'To trust everybody who can write there instead: env={"RLNB_TEAM": "1"}.'
        yield Problem(what=problem.what, fix=f"{fix} {team}")
    assets = manifest.asset_root
    if assets and "://" not in assets and not Path(assets).expanduser().is_dir():
        yield Problem(what=f"asset_root={assets!r} is not a folder.", fix="Use a folder of that machine, or None.")
    try:
        plugins.library(manifest.library)
    except RlnbError as exc:
        yield Problem(what=str(exc), fix="Install the library's plugin on that machine.")
    try:
        yield from plugins.make_launcher(manifest.launcher, manifest.launcher_settings).check(manifest)
    except CheckError as exc:
        yield from exc.problems
    except RlnbError as exc:
        yield Problem(what=str(exc))
