"""Where robot and scene files come from, decided before isaaclab is imported.

In this order: an explicit setting, ISAACSIM_ASSET_ROOT, NVIDIA's cloud if it answers, and the packs
that this machine can build for itself.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlnb import plugins
from rlnb.errors import RlnbError
from rlnb.spec import AssetPack

logger = logging.getLogger(__name__)

CLOUD_TIMEOUT_S = 2.0
VARIABLE = "ISAACSIM_ASSET_ROOT"


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetRoot:
    """Where assets come from, and why."""

    path: str
    """Folder or URL, without a slash at the end."""
    reason: str
    """Which rule chose it."""

    @property
    def local(self) -> bool:
        return "://" not in self.path


def cache_folder() -> Path:
    """Return the folder for generated assets: RLNB_CACHE, else the user's cache folder."""
    base = os.environ.get("RLNB_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rlnb"


def resolve(explicit: str | None, cloud: str | None) -> AssetRoot:
    """Return the asset root, building the local pack if nothing else is there.

    Args:
        explicit: What the user set for this run.
        cloud: Isaac Lab's own default root, a URL; None skips it.
    """
    if explicit:
        return AssetRoot(path=explicit.rstrip("/"), reason="set for this run")
    if root := os.environ.get(VARIABLE):
        return AssetRoot(path=root.rstrip("/"), reason=f"{VARIABLE} is set")
    if cloud and _answers(cloud):
        return AssetRoot(path=cloud, reason="NVIDIA's cloud answers")
    return AssetRoot(path=str(build()), reason="local pack: no asset folder is set and NVIDIA's cloud does not answer")


def _answers(url: str) -> bool:
    host = "/".join(url.split("/")[:3])
    try:
        urllib.request.urlopen(urllib.request.Request(host, method="HEAD"), timeout=CLOUD_TIMEOUT_S).close()
    except urllib.error.HTTPError:
        return True  # it answered, if only to say that its front page is private
    except OSError:
        return False
    return True


def pack_folder() -> Path:
    """Return where the installed asset packs are built, whether they are yet or not."""
    name = "-".join(f"{pack.name}-{pack.version}" for pack in plugins.asset_packs().values())
    return cache_folder() / "assets" / name


def build(destination: Path | None = None, *, force: bool = False) -> Path:
    """Build every installed asset pack into one folder and return it; quick when it is there already.

    Args:
        destination: Where to put the files; the cache folder by default.
        force: Whether to build again what is there.

    Raises:
        RlnbError: No plugin brings a pack.
    """
    packs = plugins.asset_packs()
    if not packs:
        raise RlnbError("No asset pack is installed, so robots cannot be made offline. pip install rlnb-tasks")
    folder = destination or pack_folder()
    if folder.is_dir() and not force:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers that start together build it once
        if not folder.is_dir() or force:
            _build_into(folder, list(packs.values()))
    return folder


def _build_into(folder: Path, packs: list[AssetPack]) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        made = Path(temporary) / "assets"
        made.mkdir()
        for pack in packs:
            logger.info("building asset pack %s %s", pack.name, pack.version)
            plugins.load(pack.build)(made)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)


def named_in(cfg: Any, root: AssetRoot, *, seen: set[int] | None = None) -> set[str]:
    """Return every file below the asset root that a config names, as paths below the root."""
    seen = set() if seen is None else seen
    if isinstance(cfg, str):
        prefix = root.path + "/"
        return {cfg[len(prefix) :]} if cfg.startswith(prefix) and "{" not in cfg else set()
    if id(cfg) in seen:
        return set()
    seen.add(id(cfg))
    if isinstance(cfg, dict):
        children: list[Any] = list(cfg.values())
    elif isinstance(cfg, (list, tuple)):
        children = list(cfg)
    elif hasattr(cfg, "__dataclass_fields__"):
        children = [value for name, value in vars(cfg).items() if not name.endswith("visualizer_cfg")]
    else:
        return set()
    return set().union(*(named_in(child, root, seen=seen) for child in children)) if children else set()
