"""The launcher for a Dask cluster that is there: LocalCluster, dask-kubernetes, one of your own."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb import HostedLauncher, Manifest, Problem, RlnbError

ROLES = ("tls_ca_file", "tls_client_cert", "tls_client_key")
ANSWER_S = 5.0


class ExistingCluster(HostedLauncher):
    """Runs trainings on the workers of a Dask cluster, an agent on each: one worker has to be one node.

    The run outlives this kernel, if the cluster does.

    Args:
        cluster: The cluster, or the address of its scheduler.
        nodes: Workers of each training.
        security: Paths of ``tls_ca_file``, ``tls_client_cert`` and ``tls_client_key``; None takes the cluster's own.
        insecure: Whether to use plain TCP to another machine, over which anybody in that network can run anything.
        max_restarts: Interruptions after which a training goes on by itself from its last checkpoint.
    """

    name = "dask"
    max_running = walltime_s = limit_s = nproc_per_node = None

    def __init__(
        self,
        cluster: Any = "",
        *,
        nodes: int = 1,
        security: Mapping[str, str] | None = None,
        insecure: bool = False,
        max_restarts: int = 0,
    ) -> None:
        self.address = str(cluster if isinstance(cluster, str) else cluster.scheduler_address)
        self.nodes, self.max_restarts, self._insecure = nodes, max_restarts, insecure
        own = getattr(cluster, "security", None)
        self._security = dict(security or {}) or {
            role: value for role in ROLES if own is not None and (value := getattr(own, role, None))
        }

    @property
    def settings(self) -> Mapping[str, Any]:
        """Arguments that make one like this; keys that are held in memory only are not among them."""
        paths = {role: value for role, value in self._security.items() if "\n" not in value}
        return {
            "cluster": self.address,
            "nodes": self.nodes,
            "security": paths if len(paths) == len(self._security) else {},
            "insecure": self._insecure,
            "max_restarts": self.max_restarts,
        }

    def argv(self, job_dir: Path) -> Sequence[str]:
        """Return what starts the host of a job."""
        return [sys.executable, "-P", "-m", "rlnb_dask.host", str(job_dir)]

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Any]:
        """Start the host of a job; keys that are in memory only are left for it where nobody else can read them."""
        if unknown := self._keys_unknown():
            raise RlnbError(f"{unknown.what} {unknown.fix}")
        if in_memory := {role: text for role, text in self._security.items() if "\n" in text}:
            folder = job_dir / ".tls"
            folder.mkdir(mode=0o700)
            for role, text in in_memory.items():
                with open(os.open(folder / role, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(text)
        return super().submit(command, job_dir)

    def security(self, job_dir: Path) -> Any:
        """Return Dask's object for the keys; None without any."""
        from distributed import Security

        left = {role: str(path) for role in ROLES if (path := job_dir / ".tls" / role).exists()}
        words = left or self._security
        return Security(require_encryption=True, **words) if words else None

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return why no training can be started on it."""
        scheme, _, rest = self.address.partition("://")
        host = rest.rpartition(":")[0].strip("[]")
        if not rest:
            fix = 'rlnb.dask(cluster), or rlnb.dask("tls://10.0.0.1:8786", security={...})'
            return [Problem(what=f"{self.address!r} is not the address of a Dask scheduler.", fix=fix)]
        if scheme not in ("tcp", "tls", "inproc", "ucx", "ucxx"):
            what = f"{self.address}: {scheme} is a transport of its own, which the host of a run does not know."
            return [Problem(what=what, fix="A scheduler that nodes reach by tls://; dask-gateway's are not.")]
        if unknown := self._keys_unknown():
            return [unknown]
        if self.max_restarts and any("\n" in text for text in self._security.values()):
            what = f"max_restarts={self.max_restarts}, but the cluster's keys are in memory only, and go with the job."
            return [Problem(what=what, fix="security={...} with paths of its keys, or max_restarts=0.")]
        if scheme == "inproc":
            return [Problem(what="its workers are threads of this kernel.", fix="LocalCluster(processes=True)")]
        if scheme == "tcp" and not self._insecure and not _loopback(host):
            what = f"{self.address} is plain TCP: whoever reaches it can run anything there."
            return [Problem(what=what, fix="Security.temporary() for the cluster, or insecure=True.")]
        return self._check_workers()

    def _keys_unknown(self) -> Problem | None:
        import dask
        from distributed import Security

        found = Security(**self._security).get_tls_config_for_role("client")  # what Dask's own configuration says, too
        known = (found.get("ca_file") and found.get("cert")) or dask.config.get(
            "distributed.client.security-loader", None
        )
        if known or not self.address.startswith("tls://"):
            return None
        return Problem(
            what=f"{self.address} asks for keys, which are not known here (those in memory are nowhere recorded).",
            fix=f"rlnb.dask({self.address!r}, security={{{', '.join(f'{role!r}: PATH' for role in ROLES)}}})",
        )

    def _check_workers(self) -> Sequence[Problem]:
        from distributed import Client, Security

        words = {role: value for role, value in self._security.items()}
        security = Security(require_encryption=True, **words) if words else None
        try:
            with Client(self.address, security=security, timeout=ANSWER_S, set_as_default=False) as client:
                there = len(client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError, RlnbError) as exc:
            return [Problem(what=f"{self.address} does not answer: {exc}", fix="Is it up, and are its keys given?")]
        if there < self.nodes:
            what = f"nodes={self.nodes}, but the cluster has {there} worker{'s' if there != 1 else ''}."
            return [Problem(what=what, fix=f"cluster.scale({self.nodes}), and wait for them.")]
        return []

    def __repr__(self) -> str:
        return f"rlnb.dask({self.address!r}, nodes={self.nodes})"


def dask(cluster: Any = "", **settings: Any) -> ExistingCluster:
    """Return a launcher for a Dask cluster that is there; see :class:`ExistingCluster`."""
    return ExistingCluster(cluster, **settings)


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
