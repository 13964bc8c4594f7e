"""The arguments of a run, under the names by which the user gave them."""

from __future__ import annotations

from rlnb.spec import Json, Manifest, Started, Task

SYNONYMS = {"parent": "init_from"}
"""Other names of arguments. The manifest of a run calls the origin of its first weights its parent."""
ALIKE = ("seed", "tags")
"""Arguments that may differ between runs that are averaged."""


def asked(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments that the run was given, in the order in which a legend should name them.

    ``init_from`` is the id of the run, or the file, that the first weights come from; ``inputs.teacher`` is the origin
    of an input, as in :attr:`rlnb.Manifest.inputs`. ``source`` is the hash of the
    task's module, and ``source.helpers.py`` that of a further file of the task. Task overrides are keyed by their
    dotted path (``"sim.dt"``), agent values by theirs with the prefix ``agent.``, and arguments of Isaac Lab's launcher
    by their name with the prefix ``launcher_args.``. Arguments left at their default are omitted.
    """
    task = manifest.task
    values = {
        **_fixed(manifest),
        **{f"inputs.{name}": origin for name, origin in manifest.inputs.items()},
        **{f"source.{name}": digest[:7] for name, digest in task.files.items()},
        **task.overrides,
        **{f"launcher_args.{name}": value for name, value in task.launcher_args.items()},
        **{f"agent.{path.removeprefix('+')}": value for path, value in manifest.agent.items()},
    }
    values["tags"] = values.pop("tags")  # the last one that a legend should name
    return {name: value for name, value in values.items() if value is not None}


def modules(started: Started | None) -> dict[str, Json]:
    """Return the hashes of the modules of a package's task, such as ``source.my_project.rewards``."""
    return {f"source.{name}": digest[:7] for name, digest in started.sources.items()} if started else {}


def alike(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments that averaged runs share. Each may have its own run to start from, and its own inputs."""
    values = {name: value for name, value in asked(manifest).items() if name not in ALIKE}
    origins = {name: "a run" for name in values if name == "init_from" or name.startswith("inputs.")}
    return {**values, **origins}


def argument(manifest: Manifest, name: str) -> Json:
    """Return an argument by one of the names of :func:`asked`, or by a synonym; None if it was left at its default."""
    return asked(manifest).get(SYNONYMS.get(name, name))


def _fixed(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments that every run has, with None for those left at their default."""
    return {
        "task": manifest.task.id,
        "library": manifest.library,
        "agent": manifest.agent_name,
        "seed": manifest.seed,
        "deterministic": manifest.deterministic or None,
        "num_envs": manifest.task.num_envs,
        "max_iterations": manifest.max_iterations,
        "max_frames": manifest.max_frames,
        "init_from": manifest.parent,
        "physics": manifest.task.physics,
        "renderer": manifest.task.renderer,
        "presets": "+".join(manifest.task.presets) or None,
        "imports": "+".join(manifest.task.imports) or None,
        "device": manifest.resources.device,
        "ranks": manifest.resources.world_size,
        "launcher": manifest.launcher,
        "source": (manifest.task.source_sha256 or "")[:7] or None,
        "tags": "+".join(map(str, manifest.tags)) or None,
    }


ARGUMENTS = frozenset(_fixed(Manifest(run_id="", created="", task=Task(id=""), library=""))) | SYNONYMS.keys()
"""Names that are arguments of every run, even of one that leaves them at their default."""
