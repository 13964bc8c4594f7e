"""The newest films of trainings, shown below their curves."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlnb.records.facts import RunFacts


def newest(runs: Sequence[RunFacts]) -> str:
    """Return the newest film of each run as HTML; an empty text if there is none."""
    figures = []
    for run in runs:
        films = run.films if run.manifest.film_every else {}
        if films:
            iteration = max(films)
            caption = f"{run.id}, iteration {iteration}"
            style = "display:inline-block;margin:4px;max-width:330px"
            figures.append(
                f"<figure style='{style}'>{films[iteration]._repr_html_().replace('<video ', '<video width=320 ')}"
                f"<figcaption>{html.escape(caption)}</figcaption></figure>"
            )
    return "".join(figures)
