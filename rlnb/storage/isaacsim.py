"""Find Isaac Sim in this interpreter, and whether the user has accepted NVIDIA's terms, without importing it.

``import isaacsim`` asks on stdin. A job has no stdin, and a living simulator receives its requests there.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

VARIABLE = "OMNI_KIT_ACCEPT_EULA"
_URL = "https://docs.omniverse.nvidia.com/platform/latest/common/NVIDIA_Omniverse_License_Agreement.html"
_ACCEPTED = ("y", "yes", "1")


def isaacsim_folder() -> Path | None:
    """Return the folder of the package ``isaacsim`` in this interpreter; None without Isaac Sim."""
    package = importlib.util.find_spec("isaacsim")
    return Path(package.origin).resolve().parent if package is not None and package.origin is not None else None


def isaacsim_terms() -> str:
    """Return why Isaac Sim cannot start in this interpreter, with the fix; empty if its terms were accepted.

    Also empty without Isaac Sim, and for its binary distribution, which does not ask. The rule is that of
    ``isaacsim/kit/kit_app.py`` in the wheels of Isaac Sim 6.2: the variable, or an earlier answer in a file.
    """
    folder = isaacsim_folder()
    if folder is None or not (folder / "kit" / "extscore").is_dir():
        return ""
    if os.environ.get(VARIABLE, "").lower() in _ACCEPTED or _answer(folder / "kit"):
        return ""
    return f"The terms of Isaac Sim are not accepted. Read them at {_URL}. If you accept them, set {VARIABLE}=YES."


def _answer(kit: Path) -> bool:
    """Return whether the question was answered with yes before, as Kit has recorded it in its folder."""
    try:
        first = (kit / "EULA_ACCEPTED").read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except OSError:
        return False
    return first.strip().lower() in _ACCEPTED
