"""A report: papermill runs ``report.ipynb``, and nbconvert makes an HTML file that needs no network and no JavaScript.

The notebook shows the sections of :mod:`rlnb.reports.sections`.
"""

from __future__ import annotations

import html
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.display.links import LinkedPath
from rlnb.display.status import status
from rlnb.errors import RlnbError
from rlnb.machine.packages import find_browser, install_line
from rlnb.settings import options
from rlnb.storage import entries, files, temporary

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts

_NOTEBOOK = Path(__file__).with_name("report.ipynb")
_KERNEL = "rlnb-report"
_NO_FOLDER = ("--InteractiveShellApp.ignore_cwd=True",)
"""Argument by which IPython puts no working folder into sys.path, as some versions do in spite of Python's -P."""
_POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
"""The page loads nothing from anywhere and executes no script; its pictures and videos are part of it."""
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }}
h1 {{ font-size: 1.6rem; margin: 0; overflow-wrap: anywhere }}
h2 {{ font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ccc }}
table {{ border-collapse: collapse; margin: .5rem 0 1rem; max-width: 100% }}
th, td {{ padding: .2rem 1rem .2rem 0; vertical-align: top; overflow-wrap: anywhere; border-bottom: 1px solid #eee }}
caption {{ padding: .3rem 0; white-space: nowrap }}
pre {{ background: #f6f6f6; padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px }}
img {{ max-width: 100%; height: auto }}
summary {{ cursor: pointer; margin: .3rem 0 }}
figure {{ margin: .5rem 0 1rem }} figcaption, small {{ color: #666 }}
</style></head>
<body>
{body}
</body></html>
"""


def report(runs: RunFacts | Sequence[RunFacts], path: str | Path | None = None, *, pdf: bool = False) -> Path:
    """Write a report of runs as one HTML file, next to the executed notebook, and return the path of the HTML file.

    The notebook has the curves as Plotly figures. The HTML file needs no network and no JavaScript. A cell in
    JupyterLab shows the path with links to open and download the file.

    Args:
        runs: A run, or several to compare.
        path: Path of the HTML file; None is ``report.html`` in the run's folder, or ``reports/<time>.html`` in the
            root for several runs. The notebook has the same name with the suffix ``.ipynb``.
        pdf: Whether Chromium also prints the report as a ``.pdf`` file.

    Raises:
        RlnbError: papermill, nbconvert or Chromium is not installed, there is no run, or the report cannot be made.
    """
    if isinstance(runs, str | Path):
        raise RlnbError(f"{str(runs)!r} is not a run. Use rlnb.get_run(id).")
    several = list(runs) if isinstance(runs, Sequence) else [runs]
    if not several:
        raise RlnbError("There is no run to report on. List all runs with rlnb.runs().")
    missing = [name for name in ("papermill", "nbconvert", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        raise RlnbError(f"A report needs {', '.join(missing)}. Use {install_line('rlnb[report]')}")
    browser = chromium() if pdf else ""
    target = Path(path).expanduser().absolute() if path is not None else _default_path(several)
    if target.suffix != ".html":
        raise RlnbError(f"path={str(path)!r} does not end in .html. Use the path of an HTML file.")
    if not _ours(target.with_suffix(".ipynb")):
        raise RlnbError(
            f"The report would replace {target.with_suffix('.ipynb')}, which rlnb did not write. Use another path=..."
        )
    try:
        files.make_folder(target.absolute().parent)  # before the notebook runs, so that an error comes early
    except OSError as exc:
        raise _unwritable(target, exc) from exc
    of = f"{len(several)} runs" if len(several) > 1 else several[0].id
    with status(f"Writing the report of {of}"), tempfile.TemporaryDirectory(prefix="rlnb-report-") as folder:
        executed = _execute(Path(folder), [str(run.path) for run in several])
        page = _page(executed, title=f"rlnb report: {', '.join(sorted({run.task for run in several}))}")
        _replace(target.with_suffix(".ipynb"), executed.read_bytes())
    _replace(target, page.encode())
    if pdf:
        _print(browser, target)
    return LinkedPath(target)


def _ours(notebook: Path) -> bool:
    """Return whether a notebook does not exist or belongs to an earlier report."""
    try:
        return bool(json.loads(entries.read_text(notebook))["metadata"].get("rlnb_report"))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError, KeyError, AttributeError):
        return False


def chromium() -> str:
    """Return the path of Chromium or Chrome.

    Raises:
        RlnbError: Neither is installed.
    """
    if path := find_browser():
        return path
    raise RlnbError("Chromium, which prints the PDF, is not installed. Use apt-get install chromium, or pdf=False.")


def _print(browser: str, page: Path) -> None:
    """Print a page as a PDF next to it, without network access and with an empty browser profile."""
    with tempfile.TemporaryDirectory(prefix="rlnb-chromium-") as profile:
        argv = [browser, "--headless", "--disable-gpu", f"--user-data-dir={profile}"]
        argv += ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox does not start as root
        argv += ["--no-pdf-header-footer", "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"]
        pdf = Path(profile, "report.pdf")
        done = subprocess.run([*argv, f"--print-to-pdf={pdf}", page.as_uri()], capture_output=True, text=True)
        if done.returncode or not pdf.exists():
            raise RlnbError(f"Chromium did not print the report:\n{done.stderr.strip()[-2000:]}")
        _replace(page.with_suffix(".pdf"), pdf.read_bytes())


def _replace(target: Path, content: bytes) -> None:
    try:
        files.write_bytes(target, content)
    except OSError as exc:
        raise _unwritable(target, exc) from exc


def _unwritable(target: Path, exc: OSError) -> RlnbError:
    return RlnbError(f"The report cannot be written to {target}: {exc}. Choose another path=...")


def _default_path(runs: Sequence[RunFacts]) -> Path:
    if len(runs) == 1:
        return runs[0].path / "report.html"
    return options.folders.path / "reports" / f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}.html"


def _execute(folder: Path, run_paths: list[str]) -> Path:
    """Run the notebook with papermill in a separate process and return the executed copy."""
    spec = {"argv": [sys.executable, "-P", "-m", "ipykernel_launcher", *_NO_FOLDER, "-f", "{connection_file}"]}
    kernel = folder / "kernels" / _KERNEL / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({**spec, "display_name": "rlnb", "language": "python"}))
    parameters = folder / "parameters.yaml"
    parameters.write_text(json.dumps({"run_paths": run_paths}))  # JSON is YAML
    executed = folder / "executed.ipynb"
    argv = [sys.executable, "-P", "-m", "papermill", str(_NOTEBOOK), str(executed), "--no-progress-bar"]
    # Use an own kernel spec, first on the path, because "python3" may belong to another environment without rlnb.
    paths = [str(folder), *filter(None, [os.environ.get("JUPYTER_PATH")])]
    done = subprocess.run(
        [*argv, "--kernel", _KERNEL, "--parameters_file", str(parameters)],
        env={**os.environ, **temporary.variables(), "JUPYTER_PATH": os.pathsep.join(paths)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RlnbError(f"The report's notebook failed:\n{done.stderr.strip()[-3000:]}")
    return executed


def _page(executed: Path, *, title: str) -> str:
    from nbconvert import HTMLExporter

    # The "basic" template is the bare body, which loads no require.js, MathJax or plotly.
    exporter = HTMLExporter(template_name="basic", exclude_input=True, exclude_output_prompt=True)
    exporter.exclude_anchor_links = True
    body, _ = exporter.from_filename(str(executed))
    return _PAGE.format(policy=_POLICY, title=html.escape(title), body=body)
