"""Where robot and scene files come from, decided before isaaclab is imported.

In this order: an explicit setting, ISAACSIM_ASSET_ROOT, NVIDIA's cloud if it answers, and the packs
that this machine can build for itself.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rlnb.configs.card import Asset, AssetRoot
from rlnb.errors import RlnbError
from rlnb.storage.serial import from_json
from rlnb.version import ISAACLAB_IMPORTERS
from rlnb.worker.assets import packs

CLOUD_TIMEOUT_S = 2.0
VARIABLE = "ISAACSIM_ASSET_ROOT"
FILE_FIELDS = frozenset(("usd_path", "asset_path"))
"""Names of the values in Isaac Lab's configs of spawners that hold the path of a file."""
IMPORTED = (".urdf", ".xml", ".mjcf")
"""Ends of the names of files that Isaac Lab converts to USD with Isaac Sim, or with the packages of
:data:`rlnb.version.ISAACLAB_IMPORTERS`."""
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


def strings_in(cfg: Any, path: str = "", visits: set[int] | None = None) -> Iterator[tuple[str, str]]:
    """Yield every text in a config, but those of visualizers, with its dotted path.

    Args:
        cfg: The config, or a part of one.
        path: Dotted path of the part.
        visits: ``id`` of each part that was searched before.
    """
    visits = set() if visits is None else visits
    if isinstance(cfg, str):
        yield path, cfg
        return
    if id(cfg) in visits:
        return
    visits.add(id(cfg))
    if isinstance(cfg, dict):
        children: list[tuple[Any, Any]] = list(cfg.items())
    elif isinstance(cfg, (list, tuple)):
        children = list(enumerate(cfg))
    elif hasattr(cfg, "__dataclass_fields__"):
        children = [(name, value) for name, value in vars(cfg).items() if not name.endswith("visualizer_cfg")]
    else:
        return
    for name, value in children:
        yield from strings_in(value, f"{path}.{name}" if path else str(name), visits)


def named_in(cfg: Any, root: AssetRoot) -> dict[str, tuple[str, ...]]:
    """Return every file below the asset root that a config names, with the dotted paths that name it.

    Args:
        cfg: The config.
        root: The asset root.
    """
    prefix = root.path + "/"
    found: dict[str, tuple[str, ...]] = {}
    for path, text in strings_in(cfg):
        if text.startswith(prefix) and "{" not in text and WEIGHTS not in text:
            name = text[len(prefix) :]
            found[name] = (*found.get(name, ()), path)
    return found


def own_files(cfg: Any, root: AssetRoot) -> dict[str, str]:
    """Return the robot and scene files that a config names elsewhere than below the asset root, by dotted path."""
    return {
        path: text
        for path, text in strings_in(cfg)
        if not {*path.split(".")[-2:]}.isdisjoint(FILE_FIELDS)  # the last part may be the number of one of several
        and text
        and not text.startswith(root.path + "/")
        and "{" not in text
    }


def own_asset(path: str, place: str) -> Asset:
    """Return a robot or scene file that is not below the asset root, and whether it can be used here.

    Args:
        path: Path or URL of the file.
        place: Dotted path in the env config that names it.
    """
    if "://" in path:
        if _answers(path):
            return Asset(path=path, exists=None, places=(place,))
        host = "/".join(path.split("/")[:3])
        fix = f"Download the file and pass overrides={{{place!r}: <its path>}}, or use a machine with internet."
        return Asset(path=path, exists=False, fix=fix, places=(place,), fault=f"{host} does not answer")
    if not Path(path).is_file():
        fix = f"Correct the path in the task's config, or pass overrides={{{place!r}: <the path of a file>}}."
        return Asset(path=path, exists=False, fix=fix, places=(place,))
    if path.endswith(IMPORTED) and importlib.util.find_spec("isaacsim") is None:
        fault = f"the importer of such files is not installed in {sys.executable}"
        fix = f"{shlex.quote(sys.executable)} -m pip install --no-deps {' '.join(ISAACLAB_IMPORTERS)}"
        return Asset(path=path, exists=True, fix=fix, places=(place,), fault=fault)
    return Asset(path=path, exists=True, places=(place,))


def hashes(root: AssetRoot, cfg: Any) -> dict[str, str]:
    """Return the SHA-256 of each robot and scene file of a config; an empty string for a remote or missing one.

    The key of a file is its path below the asset root, or, if it is not below it, the path in the config.
    """
    files = {name: Path(root.path) / name for name in named_in(cfg, root)}
    files |= {text: Path(text) for text in own_files(cfg, root).values()}
    digests = {}
    for name, path in sorted(files.items()):
        there = "://" not in str(name) and (root.local or path.is_absolute()) and path.is_file()
        digests[name] = hashlib.sha256(path.read_bytes()).hexdigest() if there else ""
    return digests
