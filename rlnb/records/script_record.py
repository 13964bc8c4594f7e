"""A run of a plain training script, which reports nothing to rlnb: everything comes from its files."""

from __future__ import annotations

from rlnb.contracts.libraries import Library
from rlnb.hooks import plugins
from rlnb.metrics.metrics import Metrics
from rlnb.metrics.series import Span
from rlnb.records.checkpoints import Checkpoints
from rlnb.records.record import RunRecord
from rlnb.records.stock_record import StockRecord, stock_checkpoints
from rlnb.spec import ENDED
from rlnb.storage.entries import files_below


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
