"""The demo: execute the quickstart notebook and write its report."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.errors import RlnbError
from rlnb.machine.packages import install_line

if TYPE_CHECKING:
    from traitlets.config import Config

NOTEBOOK = "01_quickstart.ipynb"
SOCKET_PATH = 100
"""Maximum length of a socket's path, in characters. Linux allows 107, and the kernel appends a number."""


def execute(out: Path) -> Path:
    """Execute the quickstart notebook and return its HTML report, or the executed notebook as HTML if it wrote none.

    Args:
        out: Folder for the notebook, its runs and its report.

    Raises:
        RlnbError: papermill is not installed, or the notebook failed.
    """
    from rlnb.display.status import status

    try:
        import papermill
    except ImportError as exc:
        raise RlnbError(f"papermill is not installed. Use {install_line('rlnb[report]')}") from exc
    start_s, folder = time.time(), out.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    notebook = folder / NOTEBOOK
    os.environ.setdefault("RLNB_ROOT", str(folder / "rlnb-runs"))
    with status("Executing the quickstart notebook (a few minutes)"), tempfile.TemporaryDirectory() as sockets:
        try:
            papermill.execute_notebook(
                str(quickstart()),
                str(notebook),
                cwd=str(folder),
                kernel_name="python3",
                progress_bar=False,
                config=kernel_over(Path(sockets)),
            )
        except papermill.PapermillExecutionError as exc:
            raise RlnbError(f"The quickstart notebook failed. Its outputs are in {notebook}.\n{exc}") from exc
    return _newest_html([folder, Path(os.environ["RLNB_ROOT"])], start_s) or _as_html(notebook)


def quickstart() -> Path:
    """Return the quickstart notebook of the repository checkout, or else the one in the package.

    Raises:
        RlnbError: Neither of them has the notebook.
    """
    package = Path(__file__).absolute().parents[1]
    for path in (package.parent / "notebooks" / NOTEBOOK, package / "notebook" / NOTEBOOK):
        if path.is_file():
            return path
    raise RlnbError(f"{NOTEBOOK} is missing from the package, {package}. Reinstall rlnb.")


def kernel_over(folder: Path) -> Config:
    """Return the configuration of a kernel whose sockets are files in a folder instead of ports.

    Other users cannot open such sockets. If the path is too long for a socket, the kernel uses ports.
    """
    from traitlets.config import Config

    path = str(folder / "kernel")
    return Config(KernelManager={"transport": "ipc", "ip": path} if len(path) < SOCKET_PATH else {})


def _newest_html(folders: Iterable[Path], since_s: float) -> Path | None:
    """Return the newest HTML file that was written since a time; None if there is none."""
    times_s = {path: path.stat().st_mtime for folder in folders for path in folder.rglob("*.html")}
    fresh = {path: time_s for path, time_s in times_s.items() if time_s >= since_s}
    return max(fresh, key=lambda path: fresh[path]) if fresh else None


def _as_html(notebook: Path) -> Path:
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter().from_filename(str(notebook))
    path = notebook.with_suffix(".html")
    path.write_text(body, encoding="utf-8")
    return path
