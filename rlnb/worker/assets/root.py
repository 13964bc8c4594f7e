"""Where robot and scene files come from, decided before isaaclab is imported.

In this order: an explicit setting, ISAACSIM_ASSET_ROOT, NVIDIA's cloud if it answers, and the packs
that this machine can build for itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.storage.serial import from_json
from rlnb.tasks.card import AssetRoot
from rlnb.worker.assets import packs

CLOUD_TIMEOUT_S = 2.0
VARIABLE = "ISAACSIM_ASSET_ROOT"
WEIGHTS = "/PretrainedCheckpoints/"
"""Part of the path of pretrained networks. Tasks load those only in play mode, which rlnb does not use."""


def search(explicit: str | None, cloud: str) -> Callable[[], AssetRoot]:
    """Start the search for the asset root; return a function that waits for its result.

    The request to the cloud and the build of packs run in a process of their own while this one imports torch. In a
    thread they would import USD at the same time as torch, and two threads that load C libraries can deadlock: one
    holds the dynamic loader's lock and waits for the GIL, the other holds the GIL and waits for that lock.

    Args:
        explicit: Asset root that the user set for this run; None or empty if not set.
        cloud: Isaac Lab's own default root, a URL.
    """
    if (root := _set_root(explicit)) is not None:
        return lambda: root
    argv = [sys.executable, "-P", "-m", "rlnb.worker", "asset-root", cloud]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def wait() -> AssetRoot:
        lines = process.communicate()[0].splitlines()
        if process.returncode or not lines:
            raise RlnbError(
                f"The search for robot assets ended with status {process.returncode}. The log above shows the reason. "
                "Fix it, or set asset_root to a folder."
            )
        answer = json.loads(lines[-1])
        if "error" in answer:
            raise RlnbError(answer["error"])
        return from_json(AssetRoot, answer)

    return wait


def resolve(cloud: str) -> AssetRoot:
    """Return NVIDIA's cloud if it answers, else the local asset root, which is built if it does not exist."""
    if _answers(cloud):
        return AssetRoot(path=cloud, reason="NVIDIA's cloud answers")
    local = packs.build(retry=False).folder  # a task that needs a failed pack reports the reason
    return AssetRoot(path=str(local), reason="local pack: no asset folder is set and NVIDIA's cloud does not answer")


def _set_root(explicit: str | None) -> AssetRoot | None:
    """Return the asset root that an argument or the environment sets; None for neither."""
    if explicit:
        return AssetRoot(path=explicit.rstrip("/"), reason="set for this run")
    if root := os.environ.get(VARIABLE):
        return AssetRoot(path=root.rstrip("/"), reason=f"{VARIABLE} is set")
    return None


def _answers(url: str) -> bool:
    host = "/".join(url.split("/")[:3])
    try:
        urllib.request.urlopen(urllib.request.Request(host, method="HEAD"), timeout=CLOUD_TIMEOUT_S).close()
    except urllib.error.HTTPError:
        return True  # the host answered, even if its front page is private
    except OSError:
        return False
    return True


def named_in(cfg: Any, root: AssetRoot, *, visits: set[int] | None = None) -> set[str]:
    """Return every file below the asset root that a config names, as paths below the root.

    Args:
        cfg: The config, or a part of one.
        root: The asset root.
        visits: ``id`` of each part that was searched before.
    """
    visits = set() if visits is None else visits
    if isinstance(cfg, str):
        prefix = root.path + "/"
        return {cfg[len(prefix) :]} if cfg.startswith(prefix) and "{" not in cfg and WEIGHTS not in cfg else set()
    if id(cfg) in visits:
        return set()
    visits.add(id(cfg))
    if isinstance(cfg, dict):
        children: list[Any] = list(cfg.values())
    elif isinstance(cfg, (list, tuple)):
        children = list(cfg)
    elif hasattr(cfg, "__dataclass_fields__"):
        children = [value for name, value in vars(cfg).items() if not name.endswith("visualizer_cfg")]
    else:
        return set()
    return set().union(*(named_in(child, root, visits=visits) for child in children)) if children else set()


def hashes(root: AssetRoot, names: set[str]) -> dict[str, str]:
    """Return the SHA-256 of each asset by name; an empty string for a remote or missing one."""
    digests = {}
    for name in sorted(names):
        path = Path(root.path) / name
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest() if root.local and path.is_file() else ""
    return digests
