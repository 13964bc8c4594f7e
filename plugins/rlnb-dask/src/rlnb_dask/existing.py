"""The launcher for an existing Dask cluster: a LocalCluster, dask-kubernetes, or one started by hand."""

from __future__ import annotations

import ipaddress
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rlnb import RlnbError
from rlnb.launchers import DetachedLauncher
from rlnb.plugin import Manifest, Problem

if TYPE_CHECKING:
    from distributed import Security
    from distributed.deploy import Cluster

Setting: TypeAlias = "str | int | bool | Mapping[str, str]"
ROLES = ("tls_ca_file", "tls_client_cert", "tls_client_key")
ANSWER_S = 5.0


class ExistingCluster(DetachedLauncher):
    """Runs trainings on the workers of a Dask cluster, one agent per worker: each worker has to be one node.

    The run outlives this kernel if the cluster does.

    Args:
        cluster: The cluster, or the address of its scheduler.
        nodes: Number of workers of each training.
        security: Paths of ``tls_ca_file``, ``tls_client_cert`` and ``tls_client_key``; None uses the cluster's own.
        insecure: Whether to allow plain TCP to another machine. Anyone on that network can then run code there.
        max_restarts: Number of interruptions after which a training resumes by itself from its last checkpoint.
    """

    name, module = "dask", "rlnb_dask.host"
    max_running = walltime_s = limit_s = nproc_per_node = None
    python = hang_after_s = None
    grace_s = 0

    def __init__(
        self,
        cluster: str | Cluster = "",
        *,
        nodes: int = 1,
        security: Mapping[str, str] | None = None,
        insecure: bool = False,
        max_restarts: int = 0,
    ) -> None:
        self.address = str(cluster if isinstance(cluster, str) else cluster.scheduler_address)
        self.nodes, self.max_restarts, self._insecure = nodes, max_restarts, insecure
        keys = getattr(cluster, "security", None)
        self._security = dict(security or {}) or {
            role: value for role in ROLES if keys is not None and (value := getattr(keys, role, None))
        }

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Arguments that make an equal launcher, without TLS keys that exist only in memory."""
        paths = {role: value for role, value in self._security.items() if "\n" not in value}
        return {
            "cluster": self.address,
            "nodes": self.nodes,
            "security": paths if len(paths) == len(self._security) else {},
            "insecure": self._insecure,
            "max_restarts": self.max_restarts,
        }

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Any]:
        """Start the job's host process; write TLS keys that exist only in memory to a private folder for it."""
        if problem := self._keys_problem():
            raise RlnbError(f"{problem.what} {problem.fix}")
        if in_memory := {role: text for role, text in self._security.items() if "\n" in text}:
            folder = job_dir / ".tls"
            folder.mkdir(mode=0o700)
            for role, text in in_memory.items():
                with open(os.open(folder / role, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(text)
        return super().submit(command, job_dir)

    def withdraw(self, job_dir: Path, ids: Sequence[str]) -> None:
        """Delete the TLS keys of a job whose host is gone."""
        shutil.rmtree(job_dir / ".tls", ignore_errors=True)

    def security(self, job_dir: Path) -> Security | None:
        """Return Dask's ``Security`` object for a job's keys; None if there are no keys."""
        paths = {role: str(path) for role in ROLES if (path := job_dir / ".tls" / role).exists()}
        return _security(paths or self._security)

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return the problems that keep a training from starting on this cluster."""
        scheme, _, rest = self.address.partition("://")
        host = rest.rpartition(":")[0].strip("[]")
        if not rest:
            fix = 'Use rlnb.dask(cluster) or rlnb.dask("tls://10.0.0.1:8786", security={...}).'
            return [Problem(what=f"{self.address!r} is not the address of a Dask scheduler.", fix=fix)]
        if scheme not in ("tcp", "tls", "inproc", "ucx", "ucxx"):
            what = f"{self.address}: the transport {scheme} is not supported."
            return [Problem(what=what, fix="Use a scheduler with a tls:// address; dask-gateway's have none.")]
        if problem := self._keys_problem():
            return [problem]
        if self.max_restarts and any("\n" in text for text in self._security.values()):
            what = f"max_restarts={self.max_restarts}, but the cluster's keys are in memory only, and end with the job."
            return [Problem(what=what, fix="Use security={...} with the paths of its keys, or max_restarts=0.")]
        if scheme == "inproc":
            what = f"{self.address}: the cluster's workers are threads of this kernel."
            return [Problem(what=what, fix="Use LocalCluster(processes=True).")]
        if scheme == "tcp" and not self._insecure and not _loopback(host):
            what = f"{self.address} is plain TCP: anyone who can connect to it can run code there."
            return [Problem(what=what, fix="Use Security.temporary() for the cluster, or insecure=True.")]
        return self._check_workers()

    def _keys_problem(self) -> Problem | None:
        import dask
        from distributed import Security

        config = Security(**self._security).get_tls_config_for_role("client")  # reads Dask's own configuration too
        complete = config.get("ca_file") and config.get("cert")
        if (
            complete
            or dask.config.get("distributed.client.security-loader", None)
            or not self.address.startswith("tls://")
        ):
            return None
        return Problem(
            what=f"{self.address} needs TLS keys, and none are given. Keys that exist only in memory are not recorded.",
            fix=f"Use rlnb.dask({self.address!r}, security={{{', '.join(f'{role!r}: PATH' for role in ROLES)}}}).",
        )

    def _check_workers(self) -> Sequence[Problem]:
        from distributed import Client

        security = _security(self._security)
        try:
            with Client(self.address, security=security, timeout=ANSWER_S, set_as_default=False) as client:
                count = len(client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError, RlnbError) as exc:
            fix = "Check that the cluster runs and that its keys are given."
            return [Problem(what=f"{self.address} does not answer: {exc}", fix=fix)]
        if count < self.nodes:
            what = f"nodes={self.nodes}, but the cluster has {count} worker{'s' if count != 1 else ''}."
            return [Problem(what=what, fix=f"Call cluster.scale({self.nodes}) and wait for the workers.")]
        return []

    def __repr__(self) -> str:
        return f"rlnb.dask({self.address!r}, nodes={self.nodes})"


def _security(keys: Mapping[str, str]) -> Security | None:
    """Return Dask's ``Security`` object for keys; None if there are no keys."""
    from distributed import Security

    return Security(require_encryption=True, **keys) if keys else None


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
