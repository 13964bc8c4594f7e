"""The launcher for a Dask cluster of the user: LocalCluster, dask-kubernetes, or one started by hand."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rlnb import HostedLauncher, Manifest, Problem, RlnbError

if TYPE_CHECKING:
    from distributed import Security
    from distributed.deploy import Cluster

Setting: TypeAlias = "str | int | bool | Mapping[str, str]"
ROLES = ("tls_ca_file", "tls_client_cert", "tls_client_key")
ANSWER_S = 5.0


class ExistingCluster(HostedLauncher):
    """Runs trainings on the workers of a Dask cluster, with an agent on each: one worker has to be one node.

    The run outlives this kernel, if the cluster does.

    Args:
        cluster: The cluster, or the address of its scheduler.
        nodes: Workers of each training.
        security: Paths of ``tls_ca_file``, ``tls_client_cert`` and ``tls_client_key``; None takes the cluster's own.
        insecure: Whether plain TCP to another machine is allowed. Anybody in that network can then run anything there.
        max_restarts: Interruptions after which a training goes on by itself from its last checkpoint.
    """

    name, module = "dask", "rlnb_dask.host"
    max_running = walltime_s = limit_s = nproc_per_node = None
    python = hang_after_s = None

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
        """Arguments that make an equal launcher; TLS keys that are only in memory are not among them."""
        paths = {role: value for role, value in self._security.items() if "\n" not in value}
        return {
            "cluster": self.address,
            "nodes": self.nodes,
            "security": paths if len(paths) == len(self._security) else {},
            "insecure": self._insecure,
            "max_restarts": self.max_restarts,
        }

    def submit(self, command: object, job_dir: Path) -> Mapping[str, Any]:
        """Start the host of a job; it finds TLS keys that are only in memory in a folder that nobody else can read."""
        if problem := self._keys_problem():
            raise RlnbError(f"{problem.what} {problem.fix}")
        if in_memory := {role: text for role, text in self._security.items() if "\n" in text}:
            folder = job_dir / ".tls"
            folder.mkdir(mode=0o700)
            for role, text in in_memory.items():
                with open(os.open(folder / role, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(text)
        return super().submit(command, job_dir)

    def security(self, job_dir: Path) -> Security | None:
        """Return Dask's object for the keys; None without any."""
        paths = {role: str(path) for role in ROLES if (path := job_dir / ".tls" / role).exists()}
        return _security(paths or self._security)

    def check(self, manifest: Manifest) -> Sequence[Problem]:
        """Return the reasons for which no training can start there."""
        scheme, _, rest = self.address.partition("://")
        host = rest.rpartition(":")[0].strip("[]")
        if not rest:
            fix = 'rlnb.dask(cluster), or rlnb.dask("tls://10.0.0.1:8786", security={...})'
            return [Problem(what=f"{self.address!r} is not the address of a Dask scheduler.", fix=fix)]
        if scheme not in ("tcp", "tls", "inproc", "ucx", "ucxx"):
            what = f"{self.address}: {scheme} is a transport of its own, which the host of a run does not know."
            return [Problem(what=what, fix="A scheduler that nodes reach by tls://; dask-gateway's are not.")]
        if problem := self._keys_problem():
            return [problem]
        if self.max_restarts and any("\n" in text for text in self._security.values()):
            what = f"max_restarts={self.max_restarts}, but the cluster's keys are in memory only, and go with the job."
            return [Problem(what=what, fix="security={...} with paths of its keys, or max_restarts=0.")]
        if scheme == "inproc":
            return [Problem(what="its workers are threads of this kernel.", fix="LocalCluster(processes=True)")]
        if scheme == "tcp" and not self._insecure and not _loopback(host):
            what = f"{self.address} is plain TCP: whoever reaches it can run anything there."
            return [Problem(what=what, fix="Security.temporary() for the cluster, or insecure=True.")]
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
            what=f"{self.address} asks for keys, which are not known here (those in memory are nowhere recorded).",
            fix=f"rlnb.dask({self.address!r}, security={{{', '.join(f'{role!r}: PATH' for role in ROLES)}}})",
        )

    def _check_workers(self) -> Sequence[Problem]:
        from distributed import Client

        security = _security(self._security)
        try:
            with Client(self.address, security=security, timeout=ANSWER_S, set_as_default=False) as client:
                count = len(client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError, RlnbError) as exc:
            return [Problem(what=f"{self.address} does not answer: {exc}", fix="Is it up, and are its keys given?")]
        if count < self.nodes:
            what = f"nodes={self.nodes}, but the cluster has {count} worker{'s' if count != 1 else ''}."
            return [Problem(what=what, fix=f"cluster.scale({self.nodes}), and wait for them.")]
        return []

    def __repr__(self) -> str:
        return f"rlnb.dask({self.address!r}, nodes={self.nodes})"


def _security(keys: Mapping[str, str]) -> Security | None:
    """Return Dask's object for keys; None without any."""
    from distributed import Security

    return Security(require_encryption=True, **keys) if keys else None


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
