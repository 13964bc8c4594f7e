"""Prints facts about the worker's interpreter for the doctor; imports nothing heavy.

It needs only the standard library, so it runs where rlnb is not installed. The doctor gives its text to ``python -c``,
followed by the text of ``rlnb/machine/cuda.py``.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
from typing import Any

PACKAGES = ("rlnb", "isaaclab", "isaacsim", "ovphysx", "torch", "warp-lang")


@dataclasses.dataclass(frozen=True)
class Facts:
    """Facts about an interpreter. The doctor's ``Worker`` has these fields too. Optional ones have equal defaults."""

    python: str
    versions: dict[str, str]
    isaacsim: str = ""
    terms: str = ""
    torch_cuda: str | None = None
    bytecode: bool = True
    driver_cuda: str = ""
    devices: tuple[str, ...] = ()
    kernel_cache: str = ""
    kernel_cache_mib: float = 0.0
    asset_pack: str = ""
    assets_failed: dict[str, str] | None = None


def facts() -> Facts:
    """Return the facts about this interpreter. Fields about a missing package keep their defaults."""
    values = Facts(python=platform.python_version(), versions=_versions())
    for add in (_with_isaacsim, _with_torch, _with_cuda, _with_kernel_cache, _with_asset_pack):
        values = add(values)
    return values


def _versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _with_isaacsim(values: Facts) -> Facts:
    """Add the folder of Isaac Sim, and why it cannot start. It is not imported, because it would ask on stdin."""
    package = importlib.util.find_spec("isaacsim")
    if package is None or package.origin is None:
        return values
    values = dataclasses.replace(values, isaacsim=os.path.dirname(package.origin))
    try:
        from rlnb.machine.packages import isaacsim_terms
    except ImportError:  # rlnb is missing in this interpreter; the doctor reports that separately
        return values
    return dataclasses.replace(values, terms=isaacsim_terms())


def _with_torch(values: Facts) -> Facts:
    """Add torch's version, such as 2.9.0+cu130, and whether its bytecode exists."""
    torch = importlib.util.find_spec("torch")  # does not import torch, which takes seconds
    if torch is None or torch.origin is None:
        return values
    with open(os.path.join(os.path.dirname(torch.origin), "version.py"), encoding="utf-8") as file:
        version = re.search(r"^__version__ *= *'(.*)'", file.read(), re.MULTILINE)
    versions = {**values.versions, **({"torch": version.group(1)} if version else {})}
    return dataclasses.replace(values, bytecode=_has_bytecode(torch.origin), versions=versions)


def _has_bytecode(module: str) -> bool:
    """Return whether the module's bytecode exists, or the first import of the module can write it."""
    if os.path.exists(importlib.util.cache_from_source(module)):
        return True
    return not sys.dont_write_bytecode and (bool(sys.pycache_prefix) or os.access(os.path.dirname(module), os.W_OK))


def _with_cuda(values: Facts) -> Facts:
    """Add the CUDA versions of torch's build and of the driver, and the GPUs that this process can see."""
    cuda = _cuda()
    driver = cuda["ask_driver"]()
    devices = tuple(model for _, model in driver.gpus)
    return dataclasses.replace(
        values, torch_cuda=cuda["torch_cuda"]() or None, driver_cuda=driver.cuda, devices=devices
    )


def _cuda() -> dict[str, Any]:
    """Return the contents of ``rlnb/machine/cuda.py``. An import of it would need rlnb."""
    contents: dict[str, Any] = {"__name__": "cuda"}
    exec(sys.argv[1], contents)
    return contents


def _with_kernel_cache(values: Facts) -> Facts:
    """Add the path and size of Warp's kernel cache, or of the prebuilt one, which the next start copies into it.

    The path follows the rule of warp.config.kernel_cache_dir; importing warp to read it would take a second.
    """
    if "warp-lang" not in values.versions:
        return values
    base = os.environ.get("WARP_CACHE_PATH")
    base = base or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "warp")
    prebuilt = os.environ.get("RLNB_PREBUILT")
    bases = [os.path.realpath(base), *([os.path.join(prebuilt, "warp")] if prebuilt else [])]
    caches = [os.path.join(folder, values.versions["warp-lang"]) for folder in bases]
    cache = next((folder for folder in caches if _mib(folder)), caches[0])
    return dataclasses.replace(values, kernel_cache=cache, kernel_cache_mib=_mib(cache))


def _mib(cache: str) -> float:
    """Return the size of all files below a folder."""
    files = [os.path.join(folder, name) for folder, _, names in os.walk(cache) for name in names]
    return sum(os.path.getsize(file) for file in files if os.path.exists(file)) / 2**20


def _with_asset_pack(values: Facts) -> Facts:
    try:
        from rlnb.hooks import plugins
        from rlnb.worker.assets import packs

        if not plugins.asset_packs():
            return values
        folder = packs.root_folder()
        return dataclasses.replace(values, asset_pack=str(folder), assets_failed=dict(packs.index(folder).failed))
    except Exception:  # rlnb is missing in this interpreter; the doctor reports that separately
        return values


if __name__ == "__main__":
    _cuda()["write"](dataclasses.asdict(facts()))
