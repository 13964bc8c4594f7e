"""The arguments of a run, under the names by which the user gave them."""

from __future__ import annotations

from rlnb.spec import Json, Manifest


def asked(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments that the run was given, in the order in which a legend should name them.

    Task overrides are keyed by their dotted path (``"sim.dt"``), agent values by theirs with the prefix ``agent.``,
    and arguments of Isaac Lab's launcher by their name with the prefix ``launcher_args.``. Arguments left at their
    default are omitted.
    """
    values = {
        "task": manifest.task.id,
        "library": manifest.library,
        "agent": manifest.agent_name,
        "seed": manifest.seed,
        "deterministic": manifest.deterministic or None,
        "num_envs": manifest.task.num_envs,
        "max_iterations": manifest.max_iterations,
        "physics": manifest.task.physics,
        "renderer": manifest.task.renderer,
        "presets": "+".join(manifest.task.presets) or None,
        "imports": "+".join(manifest.task.imports) or None,
        "device": manifest.resources.device,
        "ranks": manifest.resources.world_size,
        "launcher": manifest.launcher,
        "source": (manifest.task.source_sha256 or "")[:7] or None,
        **manifest.task.overrides,
        **{f"launcher_args.{name}": value for name, value in manifest.task.launcher_args.items()},
        **{f"agent.{path.removeprefix('+')}": value for path, value in manifest.agent.items()},
        "tags": "+".join(map(str, manifest.tags)) or None,
    }
    return {name: value for name, value in values.items() if value is not None}
