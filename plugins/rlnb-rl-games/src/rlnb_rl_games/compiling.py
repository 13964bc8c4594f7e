"""The default of ``torch_compile``, which is on in RL-Games."""

from __future__ import annotations

import logging
import os
import shutil
import sysconfig
from pathlib import Path

from rlnb_rl_games.config import Settings

logger = logging.getLogger(__name__)


def set_default(settings: Settings, device: str) -> None:
    """Turn ``torch_compile`` off, in place, where it gains nothing or fails; a value in the agent config is kept.

    On a CPU, compiling takes minutes and gains nothing for networks of this size. On a GPU, Triton compiles C code
    while the training runs, and its first step fails on a machine without a compiler or Python's headers.
    """
    if "torch_compile" in settings:
        return
    if device == "cpu":
        settings["torch_compile"] = False
    elif missing := _missing():
        settings["torch_compile"] = False
        logger.warning(
            "params.config.torch_compile is off because this machine has no %s. Install gcc and python3-dev for faster "
            "training.",
            " and no ".join(missing),
        )


def _missing() -> list[str]:
    """Return what Triton needs and does not get. It takes ``CC``, otherwise gcc or clang."""
    compilers = [os.environ["CC"]] if "CC" in os.environ else ["gcc", "clang"]
    headers = Path(sysconfig.get_path("include", "posix_prefix")) / "Python.h"
    present = {"C compiler": any(map(shutil.which, compilers)), "Python.h": headers.is_file()}
    return [name for name, is_there in present.items() if not is_there]
