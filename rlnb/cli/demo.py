"""The demo: the quickstart notebook, executed, with its report."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError

NOTEBOOK = "01_quickstart.ipynb"
SOCKET_PATH = 100
"""Letters of the path of a socket, of 107 that Linux takes; the kernel appends its number."""


def execute(out: Path) -> Path:
    """Execute the quickstart notebook and return its HTML report, its own or the notebook itself as a page.

    Args:
        out: Folder for the notebook, its runs and its report.

    Raises:
        RlnbError: papermill is missing, or the notebook failed.
    """
    from rlnb.display.status import status

    try:
        import papermill
    except ImportError as exc:
        raise RlnbError("The demo needs papermill. pip install 'rlnb[report]'") from exc
    begun, folder = time.time(), out.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    executed = folder / NOTEBOOK
    os.environ.setdefault("RLNB_ROOT", str(folder / "rlnb-runs"))
    with status("Executing the quickstart notebook (a few minutes)"), tempfile.TemporaryDirectory() as sockets:
        try:
            papermill.execute_notebook(
                str(quickstart()),
                str(executed),
                cwd=str(folder),
                kernel_name="python3",
                progress_bar=False,
                config=kernel_over(Path(sockets)),
            )
        except papermill.PapermillExecutionError as exc:
            raise RlnbError(f"The quickstart notebook failed; see {executed}\n{exc}") from exc
    return _newest_html([folder, Path(os.environ["RLNB_ROOT"])], begun) or _as_html(executed)


def quickstart() -> Path:
    """Return the quickstart notebook: of the repository checkout, else the one in the package.

    Raises:
        RlnbError: It is in neither.
    """
    package = Path(__file__).absolute().parents[1]
    for path in (package.parent / "notebooks" / NOTEBOOK, package / "notebook" / NOTEBOOK):
        if path.is_file():
            return path
    raise RlnbError(f"{NOTEBOOK} is neither beside this rlnb nor in it ({package}). Reinstall rlnb.")


def kernel_over(folder: Path) -> Any:
    """Return the configuration of a kernel whose sockets are files of a folder, instead of ports of this machine.

    Nobody else can open them. A path that is too long for a socket leaves it at ports.
    """
    from traitlets.config import Config

    path = str(folder / "kernel")
    return Config(KernelManager={"transport": "ipc", "ip": path} if len(path) < SOCKET_PATH else {})


def _newest_html(folders: Iterable[Path], since_s: float) -> Path | None:
    """Return the report that the notebook has just written, if it wrote one."""
    found = {path: path.stat().st_mtime for folder in folders for path in folder.rglob("*.html")}
    fresh = {path: written for path, written in found.items() if written >= since_s}
    return max(fresh, key=lambda path: fresh[path]) if fresh else None


def _as_html(notebook: Path) -> Path:
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter().from_filename(str(notebook))
    path = notebook.with_suffix(".html")
    path.write_text(body, encoding="utf-8")
    return path
