"""HTML tables of text, short numbers and durations."""

from __future__ import annotations

import html
from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """Return an HTML table of text. All text is escaped."""
    head = "".join(f"<th style='text-align:left'>{html.escape(str(text))}</th>" for text in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(str(text))}</td>" for text in row) + "</tr>"
        for row in rows
    )
    title = f"<caption style='text-align:left'><b>{html.escape(caption)}</b></caption>" if caption else ""
    head = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    return f"<table>{title}{head}<tbody>{body}</tbody></table>"


def cell(value: object) -> str:
    """Return a value as the text of a cell: a float with four digits, an empty text for None."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Return a readable duration: ``"42 s"``, ``"7 min"``, ``"1 h 05 min"``."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def shortened(text: str, most: int) -> str:
    """Return a text that is cut to ``most`` characters, the last of which is then an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``"1 seed"``, ``"3 seeds"``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def precise(value: float) -> str:
    """Return a number with four digits, or all digits before the point: ``0.05967``, ``12.35``, ``11,010``."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def short(value: float) -> str:
    """Return a number with three digits, or all digits before the point: ``0.0597``, ``12.3``, ``18,204``."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
