"""The figures that plugins add to a run (``rlnb_panels``), shown below the curves of an ended run and in reports."""

from __future__ import annotations

import html
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rlnb.display import figures
from rlnb.hooks.plugin import INTERRUPTS
from rlnb.hooks.registry import call

if TYPE_CHECKING:
    from rlnb.contracts.plugin_types import Panel
    from rlnb.records.facts import RunFacts
    from rlnb.spec import Json

logger = logging.getLogger(__name__)


def bundles(runs: Sequence[RunFacts]) -> Iterator[dict[str, Json]]:
    """Yield Jupyter mime bundles: a heading and a figure for each panel of each run.

    If a plugin raises an error, the error takes the place of its figure. All other panels are still shown.
    """
    for run in runs:
        answers = [*call("rlnb_panels", run=run)]
        for answer in answers:
            if answer.error is not None:
                yield _trouble(str(answer.error), answer.error.__cause__)
        for panel in (panel for answer in answers for panel in answer.value or ()):
            title = panel.title if len(runs) == 1 else f"{run.id}: {panel.title}"
            yield {"text/html": f"<h3>{html.escape(title)}</h3>", "text/plain": title}
            try:
                yield _bundle(panel)
            except INTERRUPTS:
                raise
            except BaseException as exc:  # a plugin may raise anything
                yield _trouble(f"{title} could not be drawn: {type(exc).__name__}: {exc}", exc)


def pictures(runs: Sequence[RunFacts]) -> str:
    """Return the panels as HTML with pictures, or with only the title of a figure that matplotlib cannot draw."""
    return "".join(_as_html(bundle) for bundle in bundles(runs))


def show(runs: Sequence[RunFacts]) -> None:
    """Display the panels in the notebook."""
    from rlnb.display.front_end import show_bundle

    for bundle in bundles(runs):
        show_bundle(bundle)


def _bundle(panel: Panel) -> dict[str, Json]:
    figure = panel.figure()
    if figures.drawable(figure):
        return {**figures.mimebundle(figure, picture=True), "text/plain": panel.title}
    text = f"{panel.title}: open the notebook to see this figure"  # only a browser can draw it
    return {**figures.mimebundle(figure, picture=False), "text/plain": text}


def _trouble(text: str, exc: BaseException | None) -> dict[str, Json]:
    logger.warning("%s", text, exc_info=exc)
    return {"text/html": f"<p>{html.escape(text)}</p>", "text/plain": text}


def _as_html(bundle: Mapping[str, Json]) -> str:
    text = html.escape(str(bundle["text/plain"]))
    if "image/png" in bundle:
        return f"<img alt='{text}' src='data:image/png;base64,{bundle['image/png']}'>"
    return str(bundle.get("text/html") or f"<p>{text}</p>")
