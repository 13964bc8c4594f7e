"""The arguments of :meth:`rlnb.Run.job_script`, and what every form derives from them and the run's manifest."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlnb.errors import Problem, whole_number
from rlnb.launch.injected import NODE_VARIABLES
from rlnb.spec import Json, Manifest

PORT = 29500
"""Rendezvous port on the first node, unless the cluster chooses another."""
CPUS_PER_GPU, MEMORY_GIB_PER_GPU = 8, 32
"""Size of a pod for each of its GPUs. Isaac Sim's documentation asks for 32 GB."""
CPUS_PER_RANK, MEMORY_GIB_PER_RANK = 2, 8
"""Size of a pod without GPUs, for each of its ranks."""
SHARE_OF_SHM = 4
"""Part of a pod's memory that ``/dev/shm`` may take: one of this number. Its files count as memory of the pod."""
STOP_S = 600
"""Seconds from the walltime to the limit of a service, in which images are pulled and a checkpoint is saved."""
USES: Mapping[str, frozenset[str]] = {
    "shell": frozenset(),
    "sbatch": frozenset({"cpus", "memory_gib", "env", "queue", "lines"}),
    "pytorchjob": frozenset({"image", "claim", "mount", "cpus", "memory_gib", "env", "secrets", "queue", "template"}),
    "trainjob": frozenset({"image", "claim", "mount", "cpus", "memory_gib", "env", "secrets", "queue", "template"}),
    "osmo": frozenset({"image", "mount", "cpus", "memory_gib", "env", "secrets", "queue", "template"}),
    "skypilot": frozenset({"image", "claim", "mount", "cpus", "memory_gib", "env", "secrets", "template"}),
    "dlc": frozenset({"image", "claim", "cpus", "memory_gib", "env", "queue", "template"}),
}
"""Arguments that a form reads, beside ``python``."""
CLAIMS = {
    "pytorchjob": "the persistent volume claim that holds the folder of runs",
    "trainjob": "the persistent volume claim that holds the folder of runs",
    "skypilot": "the volume that holds the folder of runs",
    "dlc": "the id of the dataset that holds the folder of runs",
}
"""Meaning of ``claim`` in the forms that need it."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"[^/\s]+/[^/\s]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One call of :meth:`rlnb.Run.job_script`."""

    path: Path
    """Folder of the run."""
    manifest: Manifest
    form: str
    python: str | None = None
    image: str = ""
    claim: str = ""
    mount: str = ""
    cpus: int | None = None
    memory_gib: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    lines: Sequence[str] = ()
    template: Document = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the job."""
        return job_name(self.manifest.run_id)

    @property
    def nodes(self) -> int:
        return self.manifest.resources.nodes

    @property
    def ranks(self) -> int:
        """Ranks on each node."""
        return self.manifest.resources.nproc_per_node

    @property
    def gpus(self) -> int:
        """GPUs of each node."""
        return 0 if self.manifest.resources.device == "cpu" else self.ranks

    @property
    def argv(self) -> Sequence[str]:
        """Command of every node."""
        program = self.python or ("python" if "image" in USES[self.form] else sys.executable)
        return [program, "-P", "-m", "rlnb.pods", str(self.path)]

    @property
    def root(self) -> str:
        """Path at which pods mount the folder of runs."""
        return self.mount or str(self.path.parent.parent)

    @property
    def pod_cpus(self) -> int:
        """Cores of each pod."""
        return self.cpus or (CPUS_PER_GPU * self.gpus if self.gpus else CPUS_PER_RANK * self.ranks)

    @property
    def pod_memory_gib(self) -> int:
        """Memory of each pod, in GiB."""
        return self.memory_gib or (MEMORY_GIB_PER_GPU * self.gpus if self.gpus else MEMORY_GIB_PER_RANK * self.ranks)

    @property
    def shm_gib(self) -> int:
        """Largest size of ``/dev/shm``, in GiB."""
        return max(1, self.pod_memory_gib // SHARE_OF_SHM)

    @property
    def pod_env(self) -> Mapping[str, str]:
        """Environment of each pod: threads of a rank, NCCL's warnings, the assets, and the user's own variables."""
        manifest, several = self.manifest, self.nodes * self.ranks > 1
        return {
            "OMP_NUM_THREADS": str(manifest.resources.threads or max(1, self.pod_cpus // self.ranks)),
            **({"NCCL_DEBUG": "WARN"} if self.gpus and several else {}),
            **({"ISAACSIM_ASSET_ROOT": manifest.asset_root} if manifest.asset_root else {}),
            **self.env,
        }

    @property
    def limit_s(self) -> int | None:
        """Seconds after which the service ends the job; None without a walltime."""
        walltime_s = self.manifest.launcher_settings.get("walltime_s")
        return round(float(str(walltime_s))) + STOP_S if walltime_s else None

    @property
    def max_restarts(self) -> int:
        """Number of interruptions after which the training is not continued."""
        return int(str(self.manifest.launcher_settings.get("max_restarts", 3)))

    def problems(self) -> Iterator[Problem]:
        """Yield every argument that is wrong, missing, or not used by the form."""
        uses = USES[self.form]
        arguments = {name for name in set().union(*USES.values()) if getattr(self, name) not in (None, "", (), {}, [])}
        for name in sorted(arguments - uses):
            forms = ", ".join(repr(form) for form, names in USES.items() if name in names)
            yield Problem(what=f"{self.form} does not use {name}=.", fix=f"Leave it out. These forms use it: {forms}.")
        if "image" in uses and not self.image:
            yield Problem(
                what=f"{self.form} needs a container image with Isaac Lab, rlnb and the plugins.", fix='image="..."'
            )
        if self.form in CLAIMS and not self.claim:
            yield Problem(what=f"{self.form} needs {CLAIMS[self.form]}.", fix='claim="..."')
        if self.mount and not self.path.is_relative_to(self.mount):
            yield Problem(
                what=f"mount={self.mount!r} does not contain {self.path}, which pods see under the same path.",
                fix=f"mount={str(self.path.parent.parent)!r}, or a folder above it",
            )
        for name in ("cpus", "memory_gib"):
            if getattr(self, name) is not None:
                yield from whole_number(name, getattr(self, name), example=16)
        yield from self._wrong_variables()
        yield from self._wrong_lines()

    def _wrong_variables(self) -> Iterator[Problem]:
        theirs = {*NODE_VARIABLES, *NODE_VARIABLES.values()}
        for name, value in (*self.env.items(), *self.secrets.items()):
            if not _VARIABLE.fullmatch(name):
                yield Problem(what=f"{name!r} is not the name of an environment variable.", fix='env={"NAME": "value"}')
            if name in theirs:
                yield Problem(what=f"{name} gives a pod its place, so the service sets it.", fix="Leave it out.")
            if not isinstance(value, str) or "\n" in value:
                yield Problem(what=f"{name}={value!r} is not a line of text.", fix=f'env={{"{name}": "1"}}')
        for name, value in self.secrets.items():
            if self.form != "skypilot" and not (isinstance(value, str) and _SECRET.fullmatch(value)):
                yield Problem(
                    what=f"secrets: {name}={value!r} is not the name of a secret and of a key in it.",
                    fix=f'secrets={{"{name}": "secret-name/key"}}',
                )

    def _wrong_lines(self) -> Iterator[Problem]:
        for line in self.lines:
            if not isinstance(line, str) or "\n" in line:
                yield Problem(what=f"lines: {line!r} is not one line of text.", fix='lines=["--account=robots"]')


# -- names -----------------------------------------------------------------------------------------------------------


MOST_NAME_CHARACTERS = 46
"""Most characters of a name. Kubernetes allows 63, of which operators need up to 17, as in ``-node-0-999-x7f2k``."""
_SUFFIX = 5
"""Characters at the end of a run's id that tell runs of the same second apart."""


def job_name(run_id: str) -> str:
    """Return a name for the job of a run: a DNS label of RFC 1035, which begins with a letter.

    Kubeflow's PyTorchJob and TrainJob require such a label, and OSMO accepts it.
    """
    name = "rlnb-" + re.sub("[^a-z0-9]+", "-", run_id.lower()).strip("-")
    return (
        name
        if len(name) <= MOST_NAME_CHARACTERS
        else name[: MOST_NAME_CHARACTERS - _SUFFIX].rstrip("-") + name[-_SUFFIX:]
    )


# -- documents -------------------------------------------------------------------------------------------------------


Document = Mapping[str, Json]
"""A JSON object."""
_AMBIGUOUS = re.compile(r"(?i)y|n|yes|no|on|off|[-+.\d][\d_:.]*")
"""Text that YAML 1.1 reads as another type, as kubectl does: ``ACCEPT_EULA: Y`` would be a boolean."""


def merged(base: Document, changes: Document) -> Document:
    """Return a document with changes. Objects are merged at any depth, and lists of named objects by their names.

    Any other list is replaced, as in a strategic merge of Kubernetes.
    """
    return {**base, **{key: _merged(base[key], value) if key in base else value for key, value in changes.items()}}


def _merged(before: Json, after: Json) -> Json:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return merged(before, after)
    if _named(before) and _named(after) and isinstance(before, Sequence) and isinstance(after, Sequence):
        items: dict[str, Json] = {_name(item): item for item in before}
        for item in after:
            items[_name(item)] = _merged(items[_name(item)], item) if _name(item) in items else item
        return [*items.values()]
    return after


def _named(value: Json) -> bool:
    """Return whether a value is a list of objects that have a name."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(item, Mapping) and "name" in item for item in value)


def _name(item: Json) -> str:
    assert isinstance(item, Mapping), "only lists of named objects are merged"
    return str(item["name"])


def yaml(document: Document) -> str:
    """Return a document as YAML."""
    from ruamel.yaml import YAML
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    def scalars(value: Json) -> Json:
        if isinstance(value, Mapping):
            return {key: scalars(item) for key, item in value.items()}
        if isinstance(value, str):
            if "\n" in value:
                return LiteralScalarString(value)
            return DoubleQuotedScalarString(value) if _AMBIGUOUS.fullmatch(value) else value
        return [scalars(item) for item in value] if isinstance(value, Sequence) else value

    writer, text = YAML(), io.StringIO()
    writer.width = 4096
    writer.indent(mapping=2, sequence=4, offset=2)
    writer.representer.ignore_aliases = lambda *_: True
    writer.dump(scalars(document), text)
    return text.getvalue()
