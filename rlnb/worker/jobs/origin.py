"""The checkpoint that a training starts from, and the proof that its library has not ignored it."""

from __future__ import annotations

import re
from pathlib import Path

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.records.options import TrainOptions


class Origin:
    """What a training starts from, and whether its backend has asked for it.

    Args:
        run: Folder of the run.
        library: The library of the run.
        options: Options of the training.
    """

    def __init__(self, run: Path, library: Library, options: TrainOptions) -> None:
        self.checkpoint = run / options.checkpoint if options.checkpoint else None
        self.init_from = Path(options.init_from) if options.init_from else None
        self._library, self._read = library, set[Path]()

    def read(self, path: Path | None) -> Path | None:
        """Return a path of this object, and note that the backend knows it."""
        if path is not None:
            self._read.add(path)
        return path

    def check(self, first_iteration: int) -> None:
        """Refuse a training that has ignored its checkpoint: it would start anew without a word.

        Args:
            first_iteration: Iteration at which the training starts, as its library says.

        Raises:
            RlnbError: The backend has not asked for the checkpoint or the first weights, or starts a resumed training
                at iteration 0. The message names the plugin.
        """
        if self.checkpoint is not None:
            name = self.checkpoint.name
            if self.checkpoint not in self._read:
                fix = "load ctx.checkpoint in train(), or set Library.resumes=False"
                raise self.error("does not read ctx.checkpoint", f"start from zero instead of {name}", fix)
            if first_iteration == 0 and not self._holds_nothing(name):
                what = "reports first_iteration=0 for a resumed training"
                fix = "pass the iteration after that of ctx.checkpoint to ctx.started()"
                raise self.error(what, f"start from zero, or overwrite the curve before {name}", fix)
        elif self.init_from is not None and self.init_from not in self._read:
            fix = "load the weights of ctx.init_from in train()"
            raise self.error("does not read ctx.init_from", f"start from fresh weights, not from {self.init_from}", fix)

    def _holds_nothing(self, name: str) -> bool:
        """Return whether a checkpoint was written before the first iteration, by its name."""
        match = re.search(self._library.checkpoint_pattern, name)
        return self._library.checkpoint_counts_finished and match is not None and int(match.group(1)) == 0

    def error(self, what: str, effect: str, fix: str) -> RlnbError:
        """Return an error of the library's backend, which names its plugin.

        Args:
            what: The fault, as a clause without its subject.
            effect: What the training would do, as a clause without its subject.
            fix: What to change in the code of the backend.
        """
        plugin = plugins.owner_of(self._library)
        return RlnbError(
            f"The library {self._library.name!r} of the {plugin} {what}. The training would {effect}. "
            f"{plugin.usual_fix} In the code of its backend, {fix}."
        )
