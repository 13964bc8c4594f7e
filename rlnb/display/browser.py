"""The browser that prints a page as a PDF: Chromium or Chrome."""

from __future__ import annotations

import shutil

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Names of the Chromium and Chrome commands in Linux distributions."""


def find_browser() -> str | None:
    """Return the path of the first browser on PATH; None without one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)
