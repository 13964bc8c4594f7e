"""TensorBoard on the event files of chosen runs, in the notebook and behind a link."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from rlnb.display.server import Framed
from rlnb.errors import RlnbError
from rlnb.records.facts import RunFacts


class TensorBoard(Framed):
    """TensorBoard on some runs."""

    def __init__(self, runs: Sequence[RunFacts], reload_s: float) -> None:
        self.runs = tuple(run.id for run in runs)
        """Ids of the runs."""
        self._folder = tempfile.TemporaryDirectory(prefix="rlnb-tensorboard-")
        for number, run in enumerate(runs):
            logs, link = run.record.folder.logs, Path(self._folder.name, run.id)
            if link.is_symlink():  # of another root
                link = link.with_name(f"{run.id} {number + 1}")
            link.symlink_to(logs if logs.exists() else run.path)
        argv = [
            sys.executable,
            "-P",
            "-m",
            "rlnb.curves.tensorboard",
            "--logdir",
            self._folder.name,
            "--host",
            "127.0.0.1",
        ]
        argv += ["--port", "0", "--reload_interval", f"{reload_s:g}", "--window_title", "rlnb"]
        super().__init__(f"TensorBoard of {runs[0].id if len(runs) == 1 else f'{len(runs)} runs'}", argv)

    def close(self) -> None:
        """End it."""
        super().close()
        self._folder.cleanup()


def tensorboard(runs: RunFacts | Sequence[RunFacts], *, reload_s: float = 5.0) -> TensorBoard:
    """Show TensorBoard on the event files of runs: in the output of the cell and behind a link.

    It reads the files that the library wrote, and those of the nodes' use (``logs/system``). The Jupyter server hands
    it through (jupyter-server-proxy), whatever its base URL is.

    Args:
        runs: A run, or several.
        reload_s: Seconds between two looks at the files.

    Raises:
        RlnbError: There is no run, or TensorBoard does not start; with the last lines that it wrote.
    """
    several = [runs] if isinstance(runs, RunFacts) else list(runs)
    if not several:
        raise RlnbError("There is no run for TensorBoard. Start one with rlnb.train(...), or look with rlnb.runs().")
    if not reload_s > 0:
        raise RlnbError(f"reload_s={reload_s!r} is not above 0.")
    return TensorBoard(list({run.path: run for run in several}.values()), reload_s)


def main() -> None:
    """Serve as ``tensorboard`` does, without those of its plugins that cannot be imported.

    One of them would end it: Isaac Lab brings open3d, whose plugin wants a system library that a cluster need not have.
    """
    from absl import app
    from tensorboard import default, main_lib, program

    loadable = []
    for entry_point in metadata.entry_points(group="tensorboard_plugins"):
        try:
            loadable.append(entry_point.load())
        except Exception as exc:  # whatever another package does when it is imported
            sys.stderr.write(f"TensorBoard does without {entry_point.value}: {exc}\n")
    main_lib.global_init()
    server = program.TensorBoard(plugins=[*default.get_static_plugins(), *loadable])
    app.run(server.main, flags_parser=server.configure)


if __name__ == "__main__":
    main()
