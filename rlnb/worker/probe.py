"""The doctor's look from within the worker's interpreter: prints one line of JSON, imports nothing heavy.

The standard library is enough, so it runs where rlnb is missing: ``python probe.py``, or its text after ``python -c``.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
from typing import Any

PACKAGES = ("rlnb", "isaaclab", "torch", "warp-lang")


def facts() -> dict[str, Any]:
    """Return what the doctor's ``Worker`` holds, save what is not known here."""
    versions = _versions()
    torch = _torch()
    if torch.get("version"):
        versions["torch"] = torch.pop("version")
    found = {"python": platform.python_version(), "versions": versions, **torch, **_cuda()}
    if "warp-lang" in versions:
        found.update(_kernel_cache(versions["warp-lang"]))
    return {**found, **_asset_pack()}


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _torch() -> dict[str, Any]:
    """Return torch's version, with "+cpu" or "+cu130", and the CUDA it was built for, from its version file."""
    torch = importlib.util.find_spec("torch")  # finds it without importing it, which takes seconds
    if torch is None or torch.origin is None:
        return {}
    with open(os.path.join(os.path.dirname(torch.origin), "version.py"), encoding="utf-8") as file:
        text = file.read()
    built = re.search(r"^cuda\b.*= *'(.*)'", text, re.MULTILINE)
    version = re.search(r"^__version__ *= *'(.*)'", text, re.MULTILINE)
    return {
        "torch_cuda": built.group(1) if built else None,
        "bytecode": _has_bytecode(torch.origin),
        **({"version": version.group(1)} if version else {}),
    }


def _has_bytecode(module: str) -> bool:
    """Return whether a start finds the module compiled, or leaves it compiled for the next one."""
    if os.path.exists(importlib.util.cache_from_source(module)):
        return True
    return not sys.dont_write_bytecode and (bool(sys.pycache_prefix) or os.access(os.path.dirname(module), os.W_OK))


def _cuda() -> dict[str, Any]:
    """Return the CUDA version that the driver speaks and the GPUs it shows to this process."""
    try:
        cuda, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return {}
    cuda.cuDriverGetVersion(ctypes.byref(number))
    speaks = f"{number.value // 1000}.{number.value % 1000 // 10}"
    names = []
    if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
        for index in range(number.value):
            name = ctypes.create_string_buffer(256)
            cuda.cuDeviceGetName(name, 256, index)
            names.append(name.value.decode("utf-8", "replace"))
    return {"driver_cuda": speaks, "devices": names}


def _kernel_cache(warp: str) -> dict[str, Any]:
    """Return Warp's kernel cache by the rule of warp.config.kernel_cache_dir; importing warp takes a second."""
    base = os.environ.get("WARP_CACHE_PATH")
    base = base or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "warp")
    cache = os.path.join(os.path.realpath(base), warp)
    files = [os.path.join(folder, name) for folder, _, names in os.walk(cache) for name in names]
    size_mib = sum(os.path.getsize(file) for file in files if os.path.exists(file)) / 2**20
    return {"kernel_cache": cache, "kernel_cache_mib": size_mib}


def _asset_pack() -> dict[str, Any]:
    try:
        from rlnb import plugins
        from rlnb.worker.assets import packs

        if not plugins.asset_packs():
            return {}
        folder = packs.root_folder()
        return {"asset_pack": str(folder), "assets_failed": packs.index(folder)["failed"]}
    except Exception:  # no rlnb in this interpreter, which is a finding of its own
        return {}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(facts()) + "\n")
