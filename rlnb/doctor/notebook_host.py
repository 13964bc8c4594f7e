"""The doctor's checks of a hosted notebook: JupyterHub or PAI-DSW, and the settings that these hosts need."""

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
    """Facts about the environment of a notebook."""

    hosts: tuple[str, ...]
    """``"JupyterHub"`` and ``"PAI-DSW"`` as detected; empty on the user's own machine."""
    base_urls: tuple[str, ...]
    """Base URLs of the running Jupyter servers, and the host's prefix."""
    proxy: bool
    """Whether jupyter-server-proxy is installed, which TensorBoard and the 3D view need behind a gateway."""
    home: bool
    """Whether the home folder is writable."""
    cache: str
    """Value of WARP_CACHE_PATH."""
    persistent: bool
    """Whether the run folder is on another file system than ``/``, and so not in the container's own layer."""
    root: Path
    """Folder of runs."""


def check_hosted(root: Path, env: Mapping[str, str]) -> list[Finding]:
    """Return the findings about the host of the notebook."""
    return judge(look(root, env))


def look(root: Path, env: Mapping[str, str]) -> Place:
    """Return the facts. They contain no environment variable's value except WARP_CACHE_PATH and the URL prefix."""
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
        persistent=existing.stat().st_dev != Path("/").stat().st_dev,
        root=root,
    )


def judge(place: Place) -> list[Finding]:
    """Return the findings. The user's own machine needs no settings for hosted notebooks."""
    where = " and ".join(place.hosts) or "no hosted environment"
    urls = ", ".join(place.base_urls)
    findings = [ok("hosted", f"{where}; {f'base_url {urls}' if urls else 'no Jupyter server is running'}")]
    if not place.home and not place.cache:
        fix = f"export WARP_CACHE_PATH={place.root.parent / '.cache' / 'warp'} to compile kernels only once."
        findings.append(warning("hosted cache", "the home folder is not writable, and WARP_CACHE_PATH is not set", fix))
    if not place.hosts:
        return findings
    if not place.persistent:
        fix = "Set RLNB_ROOT to a mounted folder, such as /mnt/workspace/rlnb-runs or your home folder on the Hub."
        findings.append(warning("hosted folder", f"{place.root} is inside the container, and is deleted with it", fix))
    if not place.proxy:
        fix = "pip install 'jupyter-server-proxy>=4.4', then restart the server."
        text = "jupyter-server-proxy is not installed, so TensorBoard and the 3D view cannot pass the gateway"
        findings.append(warning("hosted proxy", text, fix))
    return findings


def server_base_urls() -> list[str]:
    """Return the base URL of each running Jupyter server of this user."""
    import psutil

    try:
        from jupyter_core.paths import jupyter_runtime_dir
    except ImportError:
        return []
    urls = []
    for path in sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json")):
        try:
            server = json.loads(path.read_text())
            if psutil.pid_exists(server["pid"]):
                urls.append(str(server["base_url"]))
        except (OSError, ValueError, KeyError, TypeError):  # a server that is just starting or ending
            continue
    return urls


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
