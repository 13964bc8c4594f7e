"""The working folder as the last place of modules, for a project that is not installed.

The worker is started without it (``python -P``): another user's ``json.py`` there would be executed as this user, and
one's own would replace Python's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rlnb.launch.command import BY_RLNB, SAFE_PATH
from rlnb.storage import access

_refused: dict[Path, str] = {}
"""Working folders that are not searched, with who else can put modules there."""


def search() -> None:
    """Search the working folder after all other folders, if only this user can put modules there.

    With a ``PYTHONSAFEPATH`` of the user's own, it is not searched at all.
    """
    if os.environ.get(SAFE_PATH) == BY_RLNB:
        del os.environ[SAFE_PATH]
    if os.environ.get(SAFE_PATH) or not sys.flags.safe_path:  # without -P, Python itself searches it
        return
    try:
        folder = Path.cwd()
    except OSError:  # deleted
        return
    if who := access.adders_to(folder):
        _refused[folder] = who
    elif str(folder) not in sys.path:
        sys.path.append(str(folder))


def why_not(module: str) -> str:
    """Return a sentence if a module is missing because the working folder that has it is not searched; "" otherwise."""
    top = module.partition(".")[0]
    for folder, who in _refused.items():
        if (folder / top).is_dir() or (folder / f"{top}.py").is_file():
            why = f" The working folder {folder} has it, but is not searched, because of {who}."
            return f"{why} If you trust them, add it to PYTHONPATH, or set RLNB_TEAM=1."
    return ""
