"""Whether the user has accepted NVIDIA's terms for Isaac Sim, without importing Isaac Sim and without accepting them.

``import isaacsim`` asks for it on stdin, which a job does not have, and on which a living simulator receives requests.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

VARIABLE = "OMNI_KIT_ACCEPT_EULA"
_URL = "https://docs.omniverse.nvidia.com/platform/latest/common/NVIDIA_Omniverse_License_Agreement.html"
_ACCEPTED = ("y", "yes", "1")


def isaacsim_terms() -> str:
    """Return why Isaac Sim cannot start in this interpreter, with the fix; empty if its terms were accepted.

    Also empty without Isaac Sim, and for its binary distribution, which does not ask. The rule is that of
    ``isaacsim/kit/kit_app.py`` in the wheels of Isaac Sim 6.2: the variable, or an earlier answer in a file.
    """
    package = importlib.util.find_spec("isaacsim")
    if package is None or package.origin is None:
        return ""
    kit = Path(package.origin).resolve().parent / "kit"
    if not (kit / "extscore").is_dir() or os.environ.get(VARIABLE, "").lower() in _ACCEPTED or _answer(kit):
        return ""
    return f"The terms of Isaac Sim are not accepted. Read them at {_URL}. If you accept them, set {VARIABLE}=YES."


def _answer(kit: Path) -> bool:
    """Return whether the question was answered with yes before, as Kit has recorded it in its folder."""
    try:
        first = (kit / "EULA_ACCEPTED").read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except OSError:
        return False
    return first.strip().lower() in _ACCEPTED
