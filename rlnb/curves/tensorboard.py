"""TensorBoard for the event files of chosen runs, in the notebook and behind a link."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from rlnb.display.own_user import refuse_other_users
from rlnb.display.server import Framed
from rlnb.errors import RlnbError
from rlnb.records.facts import RunFacts


class TensorBoard(Framed):
    """A TensorBoard server for some runs."""

    def __init__(self, runs: Sequence[RunFacts], reload_s: float) -> None:
        self.runs = tuple(run.id for run in runs)
        """Ids of the runs."""
        self._folder = tempfile.TemporaryDirectory(prefix="rlnb-tensorboard-")
        for number, run in enumerate(runs):
            logs, link = run.record.folder.logs, Path(self._folder.name, run.id)
            if link.is_symlink():  # a run of another root has the same id
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
        argv += ["--load_fast", "false"]  # the fast reader is a server of its own, which any user can ask
        super().__init__(f"TensorBoard of {runs[0].id if len(runs) == 1 else f'{len(runs)} runs'}", argv)

    def close(self) -> None:
        """End the server."""
        super().close()
        self._folder.cleanup()


def tensorboard(runs: RunFacts | Sequence[RunFacts], *, reload_s: float = 5.0) -> TensorBoard:
    """Show TensorBoard for the event files of runs; see :meth:`rlnb.Runs.tensorboard`."""
    several = [runs] if isinstance(runs, RunFacts) else list(runs)
    if not several:
        raise RlnbError("There is no run to show. Start one with rlnb.train(...), or list all with rlnb.runs().")
    if not reload_s > 0:
        raise RlnbError(f"reload_s={reload_s!r} is not a positive number. Use reload_s=5.")
    return TensorBoard(list({run.path: run for run in several}.values()), reload_s)


def main() -> None:
    """Serve like ``tensorboard``, but for this user only, and without TensorBoard plugins that cannot be imported.

    A plugin that cannot be imported would end ``tensorboard``. Isaac Lab brings open3d, whose plugin needs a system
    library that clusters may lack.
    """
    from absl import app
    from tensorboard import default, main_lib, program

    loadable = []
    for entry_point in metadata.entry_points(group="tensorboard_plugins"):
        try:
            loadable.append(entry_point.load())
        except Exception as exc:  # importing another package may raise anything
            sys.stderr.write(f"TensorBoard runs without its plugin {entry_point.value}: {exc}\n")
    refuse_other_users()
    main_lib.global_init()
    server = program.TensorBoard(plugins=[*default.get_static_plugins(), *loadable])
    app.run(server.main, flags_parser=server.configure)


if __name__ == "__main__":
    main()
