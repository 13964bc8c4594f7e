"""The addresses of files that the output of a cell names by their paths: what this server serves, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jupyter_server.services.contents.filemanager import FileContentsManager

from rlnb_jupyterlab import detail
from rlnb_jupyterlab.files import IN_PAGE, REPORTS, open_report
from rlnb_jupyterlab.watcher import Watcher

OPENED = IN_PAGE - {".mp4"}
"""Kinds of files that a browser shows in a tab. The sandbox keeps it from loading the rest of a film there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileLink:
    """The link to a file; without an address if the server does not serve the file."""

    url: str = ""
    """Address, relative to the server's base."""
    opens: bool = False
    """Whether a browser shows the file; others are only downloaded."""


def link_to(path: str, watcher: Watcher, contents: object) -> FileLink:
    """Return the link to a file of a run, a report of several runs, or a file in the server's own folder.

    Args:
        path: Absolute path of the file.
        watcher: The reader of the runs' folders.
        contents: The server's contents manager, which may keep its files elsewhere than on a disk.
    """
    if path.startswith(("//", "\\\\")):  # Windows would log in to the machine that the path names
        return FileLink()
    try:
        file = Path(path).resolve()
        if not Path(path).is_absolute() or not file.is_file():
            return FileLink()
        return _to_run(file, watcher) or _to_report(file, watcher) or _to_contents(file, contents) or FileLink()
    except (OSError, ValueError, RuntimeError):  # such as a long name, a null byte, or links in a circle
        return FileLink()


def _to_run(file: Path, watcher: Watcher) -> FileLink | None:
    key = watcher.key_at(file)
    run = watcher.run(key) if key else None
    if key is None or run is None or (opened := detail.open_offered(run, file)) is None:
        return None
    opened.close()
    return _link(f"rlnb/runs/{key}/files", file.relative_to(run.path))


def _to_report(file: Path, watcher: Watcher) -> FileLink | None:
    for number, root in enumerate(watcher.roots):
        if file.parent == root / REPORTS and (opened := open_report(root, file.name)) is not None:
            opened.close()
            return _link(f"rlnb/reports/{number}", Path(file.name))
    return None


def _to_contents(file: Path, contents: object) -> FileLink | None:
    """Return the link by which JupyterLab's own file browser downloads a file."""
    if not isinstance(contents, FileContentsManager):
        return None
    root = Path(contents.root_dir).resolve()
    if not file.is_relative_to(root) or any(part.startswith(".") for part in file.relative_to(root).parts):
        return None
    return _link("files", file.relative_to(root))


def _link(folder: str, file: Path) -> FileLink:
    return FileLink(url=f"{folder}/{quote(file.as_posix())}", opens=file.suffix.lower() in OPENED)
