"""Hosted notebooks, as far as the doctor judges them: where they live, and what has to be set there."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.doctor.finding import Finding, ok, warning


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Facts of where a notebook lives."""

    hosts: tuple[str, ...]
    """``"JupyterHub"``, ``"PAI-DSW"``; none is a machine of one's own."""
    base_urls: tuple[str, ...]
    """Of the Jupyter servers that run, and the prefix that the host says."""
    proxy: bool
    """Whether jupyter-server-proxy is there, by which TensorBoard and the 3D view pass the gateway."""
    home: bool
    """Whether the home folder can be written."""
    cache: str
    """What WARP_CACHE_PATH says."""
    kept: bool
    """Whether the run folder lies on a file system of its own, and not in the container's layer."""
    root: Path
    """Folder of runs."""


def check_hosted(root: Path, env: Mapping[str, str]) -> list[Finding]:
    """Tell where the notebook lives, and what is to be set there."""
    return judge(look(root, env))


def look(root: Path, env: Mapping[str, str]) -> Place:
    """Return the facts. Values of variables stay out, save the prefix."""
    hosts = []
    if any(name.startswith("JUPYTERHUB_") for name in env):
        hosts.append("JupyterHub")
    if any(name.upper().startswith(("DSW_", "PAI_DSW")) for name in env):
        hosts.append("PAI-DSW")
    prefix = env.get("JUPYTERHUB_SERVICE_PREFIX")
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    return Place(
        hosts=tuple(hosts),
        base_urls=tuple(sorted({*server_base_urls(), *([prefix] if prefix else [])})),
        proxy=importlib.util.find_spec("jupyter_server_proxy") is not None,
        home=_writable(Path.home()),
        cache=env.get("WARP_CACHE_PATH", ""),
        kept=existing.stat().st_dev != Path("/").stat().st_dev,
        root=root,
    )


def judge(place: Place) -> list[Finding]:
    """Judge them: on a machine of one's own nothing has to be set."""
    where = " and ".join(place.hosts) or "no hosted environment"
    found = [ok("hosted", f"{where}; base_url {', '.join(place.base_urls) or 'unknown: no server runs'}")]
    if not place.home and not place.cache:
        fix = f"export WARP_CACHE_PATH={place.root.parent / '.cache' / 'warp'}, so that kernels are compiled once."
        found.append(warning("hosted cache", "the home folder cannot be written, and WARP_CACHE_PATH is not set", fix))
    if not place.hosts:
        return found
    if not place.kept:
        fix = "Set RLNB_ROOT to a folder that is mounted, such as /mnt/workspace/rlnb-runs or your home on the Hub."
        found.append(warning("hosted folder", f"{place.root} is in the container itself, and gone with it", fix))
    if not place.proxy:
        fix = "pip install 'jupyter-server-proxy>=4.4', then restart the server."
        lost = "no jupyter-server-proxy: TensorBoard and the 3D view cannot pass the gateway"
        found.append(warning("hosted proxy", lost, fix))
    return found


def server_base_urls() -> list[str]:
    """Return the base_url of each Jupyter server of this user that still runs."""
    import psutil

    try:
        from jupyter_core.paths import jupyter_runtime_dir
    except ImportError:
        return []
    found = []
    for path in sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json")):
        try:
            server = json.loads(path.read_text())
            if psutil.pid_exists(server["pid"]):
                found.append(str(server["base_url"]))
        except (OSError, ValueError, KeyError, TypeError):  # a server that is just starting or ending
            continue
    return found


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
