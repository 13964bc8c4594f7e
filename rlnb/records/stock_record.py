"""A folder that stock ``isaaclab train`` wrote.

No file in it records how the training ended, so the state follows from the age of the files and from the process that
wrote them.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from rlnb.contracts.libraries import Library
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.metrics.metrics import Metrics
from rlnb.metrics.series import Span
from rlnb.records.checkpoints import Checkpoints
from rlnb.records.record import RunRecord
from rlnb.spec import ENDED, Manifest, State
from rlnb.storage import files
from rlnb.storage.clock import SILENT_AFTER_S, age_s
from rlnb.storage.entries import files_below
from rlnb.storage.serial import from_json

STARTS_WITHIN_S = 300.0
"""Seconds after which a run without any event file counts as failed. Isaac Sim and a cold cache take minutes."""
_QUIET_S = 10.0
"""Seconds without a new event before the writer of a file is looked for. Until then, the run counts as
running: a container may share its host's name, but not its process ids."""
_WRITER = re.compile(r"tfevents\.\d+\.(?P<host>.+)\.(?P<pid>\d+)\.\d+$")
"""Host and process in the name of an event file, which TensorBoard's own writer puts there."""


def is_stock(folder: Path) -> bool:
    """Return whether stock Isaac Lab wrote a folder: its configs are there, or the ``run.json`` of a failed start."""
    if all(files.there(folder / "params" / name) for name in ("agent.yaml", "env.yaml")):
        return True
    try:
        data = files.read_json(folder / "run.json", files.RECORD_BYTES)
    except RlnbError:
        return False
    return isinstance(data, Mapping) and all(isinstance(data.get(name), str) for name in ("library", "task"))


class StockRecord(RunRecord):
    """A folder that stock ``isaaclab train`` wrote: ``logs/<library>/<experiment>/<time>``."""

    @property
    def manifest(self) -> Manifest:
        data = files.read_json(self.path / "run.json", files.RECORD_BYTES) or {}
        created = data.get("created_at") or datetime.fromtimestamp(self.path.stat().st_mtime, UTC).isoformat()
        manifest = {
            "run_id": self.path.name,
            "created": created,
            "task": {"id": data.get("task", self.path.parent.name)},
            "library": data.get("library", self.path.parent.parent.name),
            "launcher": "none",
        }
        return from_json(Manifest, manifest)

    @property
    def state(self) -> State:
        """State, which stock runs do not record.

        "running" while event files grow and the process that writes them is not known to have ended, else "completed".
        A run without event files and checkpoints is "starting", and "failed" after five minutes.
        An event file that has changed in the last ten seconds always counts as growing.
        """
        events = list(files_below(self.path, lambda name: "tfevents" in name))
        if not events:
            if self.checkpoints:
                return "completed"
            return "starting" if age_s(self.path) < STARTS_WITHIN_S else "failed"
        newest = min(events, key=age_s)
        if (quiet_s := age_s(newest)) < _QUIET_S:
            return "running"
        return "running" if quiet_s < SILENT_AFTER_S and not _writer_ended(newest) else "completed"

    @property
    def _logs(self) -> Path:
        return self.path

    @property
    def metrics(self) -> Metrics:
        if self._metrics is None:
            self._metrics = Metrics(self.path, self.library_spec, self._spans())
        return self._metrics

    def _spans(self) -> list[Span]:
        return self.spans(self.library_spec or plugins.SCRIPT)

    def spans(self, library: Library, world_size: int = 1) -> list[Span]:
        """Return how a library counts steps, from the dumped configs, whose ``num_envs`` is that of one rank."""
        num_envs = _yaml_int(self.path / "params" / "env.yaml", "num_envs") * world_size
        horizon = _yaml_int(self.path / "params" / "agent.yaml", library.horizon_key)
        frames, steps = {
            "iteration": (num_envs * horizon, 1),
            "timestep": (num_envs, horizon),
            "frame": (1, num_envs * horizon),
        }[library.step_unit]
        return [
            Span(
                start_time=0.0,
                frames_per_step=float(frames),
                steps_per_iteration=float(steps),
                logged_at_end=library.logged_at_end,
            )
        ]

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(stock_checkpoints(self.path, self.library_spec or plugins.SCRIPT), self)


def stock_checkpoints(folder: Path, library: Library) -> list[Path]:
    """Return the checkpoints below a folder in which a library wrote them without rlnb, the oldest first."""
    patterns = library.stock_checkpoints or (library.checkpoint_pattern,)
    found: list[tuple[int, int, Path]] = []
    for path in files_below(folder):
        matches = ((age, re.search(pattern, path.name)) for age, pattern in enumerate(patterns))
        age, match = next(((age, match) for age, match in matches if match), (0, None))
        if match is not None and not path.name.startswith(".") and path.is_file():
            found.append((age, int(match[1]) if match.lastindex else -1, path))
    return [path for *_, path in sorted(found)]


def _writer_ended(events: Path) -> bool:
    """Return whether the process that wrote an event file is known to have ended: it was on this host, by its name."""
    match = _WRITER.search(events.name)
    if match is None or match["host"] != socket.gethostname():
        return False
    return os.path.exists("/proc/self") and not os.path.exists(f"/proc/{match['pid']}")


def _yaml_int(path: Path, key: str) -> int:
    """Return the first ``key: <int>`` of a YAML file; 1 if there is none above 0.

    A regular expression suffices: Isaac Lab's dumps hold Python tags, which safe YAML readers refuse.
    """
    try:
        with files.open_regular(path) as file:
            text = file.read(files.RECORD_BYTES).decode("utf-8", "replace")
    except (OSError, RlnbError):
        return 1
    match = re.search(rf"^\s*{key}: (\d{{1,15}})$", text, re.MULTILINE)
    return (int(match.group(1)) if match else 1) or 1


def fix_of(record: StockRecord, name: str | Path | None) -> str:
    """Return why rlnb starts no job on a run of stock Isaac Lab, and the calls that work with its checkpoint."""
    paths = [path for path in record.checkpoints if name is None or path.name == Path(name).name]
    what = f"{record.path} was written by stock Isaac Lab; rlnb only reads it."
    if not paths:
        return f"{what} It has no {'checkpoint' if name is None else f'checkpoint {name}'}."
    path = str(paths[-1])
    return (
        f"{what} To train on, use rlnb.train({record.task!r}, library={record.library!r}, init_from={path!r}). "
        f"To evaluate the checkpoint, use checkpoint={path!r} with a run of the same task that rlnb has trained."
    )


# -- runs of scripts -------------------------------------------------------------------------------------------------


class ScriptRecord(RunRecord):
    """Record whose metrics come from all event files below ``logs/``, named as in the library that uses such tags."""

    _detected: Library | None = None

    @property
    def library_spec(self) -> Library | None:
        """The RL library that the script uses, detected from its logged tags; None before it has logged any."""
        if self._detected is None:
            tags = self._logged_tags()
            matches = {
                name: len(tags & {*spec.metrics.values(), *spec.former_metrics.values()})
                for name, spec in plugins.libraries().items()
            }
            best = max(matches, key=lambda name: matches[name], default=None)
            if best is not None and matches[best]:
                self._detected = plugins.library(best)
                self._metrics = None  # the cached metrics use raw tags
        return self._detected

    def _logged_tags(self) -> set[str]:
        if self.state in ENDED:
            return {point.tag for point in self._last_points(self._spans())}
        if self._metrics is None:
            self._metrics = Metrics(self.folder.logs, None)
        self._metrics.refresh()
        return self._metrics.plain_tags

    @property
    def metrics(self) -> Metrics:
        """Live metrics: by the library's names once its tags are detected, until then by raw tag."""
        _ = self.library_spec
        return super().metrics

    def _spans(self) -> list[Span]:
        """Return how the library counts steps, from the env count and horizon in the configs that the script dumped."""
        dumps = sorted(
            path for path in files_below(self.folder.logs, "agent.yaml".__eq__) if path.parent.name == "params"
        )
        if not dumps or self._detected is None:
            return []
        stock = StockRecord(dumps[-1].parent.parent)
        return stock.spans(self._detected, self.manifest.resources.world_size)

    @property
    def checkpoints(self) -> Checkpoints:
        library = self.library_spec or plugins.SCRIPT
        known = stock_checkpoints(self.folder.logs, library)
        others = self.folder.checkpoints("**/*.pt*", library.checkpoint_pattern)
        return Checkpoints([*(path for path in others if path not in known), *known], self)
