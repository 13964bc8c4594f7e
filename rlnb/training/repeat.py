"""``rlnb.train(like=run)``: the arguments of a run that repeats another one, and what cannot be repeated exactly."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rlnb.configs.agent import AgentArgument, AgentChoice, agent_choice, choice_of
from rlnb.configs.card import TaskCard
from rlnb.contracts.launchers import Launcher
from rlnb.errors import NotFoundError, RlnbError
from rlnb.hooks import plugins
from rlnb.launch.local import LocalLauncher
from rlnb.machine import threads
from rlnb.machine.cores import available
from rlnb.records.arguments import resolved_configs
from rlnb.records.facts import RunFacts, find_run
from rlnb.records.layout import RunDir
from rlnb.records.options import TrainOptions, options_of
from rlnb.records.record import RunRecord
from rlnb.records.repetition import of_versions, versions_of
from rlnb.records.stock_record import StockRecord
from rlnb.records.trust import require_trusted_owner
from rlnb.spec import Json, Manifest, Task
from rlnb.storage import entries, files
from rlnb.storage.files import has_hash
from rlnb.tasks.task import task as task_of
from rlnb.training.arguments import TRAIN_ARGUMENTS, TrainArguments, recorded_arguments
from rlnb.training.inputs import InputFile
from rlnb.training.lookup import Lookup
from rlnb.training.manifest import Origin

logger = logging.getLogger(__name__)
Arguments: TypeAlias = "Mapping[str, Any]"
"""Arguments of ``rlnb.train``, by name."""
_PLAIN = (bool, int, float, str, type(None))


def request_of(task: Task | str | None, arguments: Arguments) -> TrainArguments:
    """Return the request of a call. What the call leaves out comes from the run in its argument ``like``, if any.

    Args:
        task: The task, or its name; None for that of the run, or for a script.
        arguments: All other arguments of the call, by name.

    Raises:
        ArgumentError: A name in ``arguments`` is not an argument of ``rlnb.train``.
        RunError: The run is another user's and not trusted, or cannot be repeated.
        RlnbError: As for :meth:`TrainArguments.of`, or ``like`` is not a run.
    """
    if arguments.get("like") is None:
        return TrainArguments.of(task, arguments)
    like = _run(arguments["like"])
    no_values = {name for name, argument in TRAIN_ARGUMENTS.items() if not argument.none}  # if they are None
    arguments = {name: value for name, value in arguments.items() if value is not None or name not in no_values}
    trust = arguments.get("trust") is True
    if like.manifest.script:
        require_trusted_owner(like.record, trust=trust)  # the owner alone matters, since a script loads what it wants
        arguments = {name: value for name, value in arguments.items() if name != "trust"}
        return TrainArguments.of(None, {**_of_script(like, arguments), **arguments, "like": like})
    require_trusted_owner(like.record, trust=trust)
    if task is None or isinstance(like.record, StockRecord):
        task = task_of(like, trust=trust)
    return TrainArguments.of(task, {**_of_task(like, arguments), **_given(like, arguments), "like": like})


def seeds_of(arguments: Arguments) -> Sequence[Any] | None:
    """Return the seeds of a call that starts a run for each; None for a call that starts one run.

    Raises:
        RlnbError: There is no seed, or one of them twice.
    """
    seeds = arguments.get("seed")
    if not isinstance(seeds, Sequence) or isinstance(seeds, str | bytes):
        return None
    if not seeds or len({*map(repr, seeds)}) < len(seeds):
        raise RlnbError(f"seed={seeds!r} has {'a seed twice' if seeds else 'no seed'}. Use seed=[1, 2, 3].")
    return seeds


def requests_of(task: Task | str | None, arguments: Arguments) -> list[TrainArguments]:
    """Return the requests of a call: one, or one for each seed of a list.

    Raises:
        ArgumentError: As for :func:`request_of`.
        RlnbError: As for :func:`request_of`, or a seed is there twice.
    """
    seeds = seeds_of(arguments)
    if seeds is None:
        return [request_of(task, arguments)]
    return [request_of(task, {**arguments, "seed": seed}) for seed in seeds]


def _run(like: object) -> RunFacts:
    """Return the run of an argument ``like``.

    Raises:
        RlnbError: It is neither a run, nor the id or the folder of one.
    """
    if isinstance(like, RunFacts):
        return like
    if not isinstance(like, str | Path):
        raise RlnbError(f"like={like!r} is not a run, its id or its folder. Use one that rlnb.runs() lists.")
    try:
        return find_run(str(like))
    except NotFoundError as exc:
        raise NotFoundError(f'{exc} If its folder was moved, use like="path/of/that/folder".') from exc


def _given(like: RunFacts, arguments: Arguments) -> Arguments:
    """Return the arguments of a call, with the agent values added to those of the run."""
    agent = arguments.get("agent")
    if _library(like, arguments) != like.library or _names_agent(agent):
        return arguments
    return {**arguments, "agent": [choice_of(like.manifest), *([] if agent is None else [agent])]}


def _library(like: RunFacts, arguments: Arguments) -> object:
    library = arguments.get("library")
    return like.library if library is None else library


def _names_agent(agent: AgentArgument) -> bool:
    """Return whether an argument ``agent`` chooses a config by its name. What is wrong with it is told later."""
    try:
        return agent_choice(agent).name is not None
    except RlnbError:
        return False


def _of_task(like: RunFacts, arguments: Arguments) -> Arguments:
    """Return the arguments of a run with a task, by name, except for the agent config."""
    manifest = like.manifest
    own = ("max_iterations", "max_frames", "num_envs", "name", "tags")  # of the length, the task, and of no other run
    values: Arguments = {name: value for name, value in recorded_arguments(manifest).items() if name not in own}
    values = {**values, "alerts": list(manifest.alerts), "launcher": _launcher(like, arguments)}
    values = {**values, **_length(like, arguments)}
    if _library(like, arguments) != manifest.library:
        logger.warning("The agent config of %s, its weights and its inputs are not those of another library.", like.id)
        return values
    if "init_from" not in arguments and manifest.parent is not None:
        values = {**values, "init_from": weights_of(like)}
    if "inputs" not in arguments and manifest.inputs:
        values = {**values, "inputs": _inputs(like)}
    return values


def _length(like: RunFacts, arguments: Arguments) -> Arguments:
    """Return the length of a run, unless the call gives another one. A run that was extended ends where it ended."""
    manifest, started = like.manifest, like.started
    if arguments.get("max_iterations") is not None or arguments.get("max_frames") is not None:
        return {}
    first = next((job for job in like.jobs if job.kind == "train"), None)
    if manifest.max_frames is not None and (first is None or started is None or first.started == started):
        return {"max_frames": manifest.max_frames}
    return {"max_iterations": started.max_iterations if started else manifest.max_iterations}


def _launcher(like: RunFacts, arguments: Arguments) -> Launcher | None:
    """Return a launcher like that of a run, unless the call gives one; None is this machine."""
    manifest = like.manifest
    if "launcher" in arguments:
        return None
    if manifest.launcher == LocalLauncher().name:
        walltime_s = manifest.launcher_settings.get("walltime_s")
        return LocalLauncher(walltime_s=walltime_s) if isinstance(walltime_s, int | float) else None
    try:
        launcher = plugins.launcher_of(manifest)
    except (RlnbError, TypeError, ValueError) as exc:
        raise RlnbError(
            f"{like.id} was started by the launcher {manifest.launcher!r}, which cannot be used here: {exc} "
            "Use launcher=rlnb.local() to train on this machine, or another launcher."
        ) from exc
    settings = ", ".join(f"{name}={value!r}" for name, value in manifest.launcher_settings.items() if value is not None)
    logger.info("Uses the launcher of %s: %s(%s). launcher= chooses another.", like.id, manifest.launcher, settings)
    return launcher


def weights_of(like: RunFacts) -> Path:
    """Return the checkpoint that a run started from.

    Raises:
        RlnbError: It does not exist any more.
    """
    manifest = like.manifest
    first = next(job for job in like.jobs if job.kind == "train")
    path = Path(options_of(TrainOptions, first.folder).init_from or str(manifest.parent))
    if files.there(path):
        return path
    try:  # the folder of runs was moved
        parent = find_run(str(manifest.parent)).path
        moved = parent.joinpath(*path.parts[path.parts.index(parent.name) + 1 :])
        if files.there(moved):
            return moved
    except (NotFoundError, ValueError):
        pass
    raise RlnbError(
        f"{like.id} started from the weights {path}, which do not exist any more. Use init_from= with a run or a "
        "checkpoint, or init_from=None for fresh weights."
    )


def _inputs(like: RunFacts) -> dict[str, InputFile]:
    """Return the inputs of a run, from the copies in its folder.

    Raises:
        RlnbError: A copy is missing.
    """
    inputs, folder = {}, like.record.folder
    for name, origin in like.manifest.inputs.items():
        file, run = folder.input(name, origin), folder.input_run(name)
        if not files.there(file):
            raise RlnbError(f"{like.id} has no copy of its input {name!r} ({file}). Use inputs={{{name!r}: ...}}.")
        policy_of = RunRecord(run.path) if files.there(run.manifest) else None
        inputs[name] = InputFile(file=file, origin=origin, policy_of=policy_of)
    return inputs


def _of_script(like: RunFacts, arguments: Arguments) -> Arguments:
    """Return the arguments of the run of a script.

    Raises:
        RlnbError: Neither the script nor its copy in the run's folder is the one that ran.
    """
    manifest = like.manifest
    script, *args = manifest.script
    copy = like.record.folder.source / Path(script).name
    digest = manifest.task.source_sha256
    path = next((path for path in (Path(script), copy) if _has(path, digest)), None)
    if path is None and "script" not in arguments:
        raise RlnbError(f"Neither {script} nor {copy} is the script that {like.id} ran. Use script= with that script.")
    if path == copy != Path(script):
        logger.warning("%s has changed since %s: the copy in the run's folder is used.", script, like.id)
    return {
        "script": path,
        "args": args,
        "nproc_per_node": manifest.resources.nproc_per_node,
        "python": manifest.python,
        "asset_root": manifest.asset_root,
        "launcher": _launcher(like, arguments),
    }


def _has(path: Path, digest: str | None) -> bool:
    return path.is_file() and has_hash(entries.read_bytes(path), digest)


def as_recorded(choice: AgentChoice, like: RunFacts, lookup: Lookup) -> AgentChoice:
    """Return an agent config with the values of a run where today's config has others.

    The config of a package may have changed since the run. A value that the call or the run has set stays, and so do
    values that rlnb or the library's backend sets itself.

    Args:
        choice: Agent config of the call, with the values to set.
        like: The run.
        lookup: Library and agent config of the new run.
    """
    library, agent = lookup.library, lookup.agent
    if library is None or agent is None or (lookup.name, choice.name) != (like.library, like.manifest.agent_name):
        return choice
    recorded = {name.removeprefix("agent."): value for name, value in resolved_configs(like.record.folder).items()}
    changes = like.started.agent_changes if like.started else {}
    others = {*library.overruled, *library.adapted, *changes, *(path.removeprefix("+") for path in choice.values)}
    values = {
        path: recorded[path]
        for path, field in agent.fields.items()
        if path in recorded and path not in others and _differs(recorded[path], field.value)
    }
    if values:
        texts = [f"{path} is {agent.fields[path].value!r} now, {value!r} is used" for path, value in values.items()]
        logger.warning("The agent config has changed since %s: %s.", like.id, "; ".join(texts))
    return AgentChoice(name=choice.name, values={**values, **choice.values})


def _differs(then: Json, now: Json) -> bool:
    """Return whether two values of a config differ. Values that YAML and a card write in different forms do not."""
    if isinstance(then, list) and isinstance(now, list):
        return len(then) != len(now) or any(map(_differs, then, now))
    if not isinstance(then, _PLAIN) or not isinstance(now, _PLAIN):
        return False
    if isinstance(then, str) != isinstance(now, str):  # YAML 1.1 reads 5e-4 as a text
        try:
            return float(str(then)) != float(str(now))
        except ValueError:
            return True
    return then != now


def first_weights(origin: Origin, like: RunFacts) -> Origin:
    """Return the origin of the first weights, under the name that the repeated run has for the same checkpoint."""
    with contextlib.suppress(RlnbError):  # that checkpoint is gone
        if origin.checkpoint and like.manifest.parent and Path(origin.checkpoint) == weights_of(like):
            return Origin(checkpoint=origin.checkpoint, parent=like.manifest.parent)
    return origin


def linked(manifest: Manifest, like: RunFacts, runs: Path) -> Manifest:
    """Return the manifest of a run that names the run which it repeats, and has its number of threads.

    If the script is the copy in the folder of that run, which may be deleted while the new run waits in a queue, the
    manifest names the copy of the new run.

    Args:
        manifest: Manifest of the new run.
        like: The run that it repeats.
        runs: Folder of the new run's folder.
    """
    threads = like.manifest.resources.threads
    if threads is None and like.started is not None and like.started.threads not in (0, _usual_threads()):
        threads = like.started.threads
    resources = dataclasses.replace(manifest.resources, threads=threads)
    script = manifest.script
    if script and Path(script[0]).resolve().parent == like.record.folder.source.resolve():
        script = (str(RunDir(runs.absolute() / manifest.run_id).source / Path(script[0]).name), *script[1:])
    return dataclasses.replace(manifest, like=like.manifest.run_id, resources=resources, script=script)


def _usual_threads() -> int:
    """Return the number of threads that torch probably takes in a process which this one starts."""
    number = os.environ.get(threads.OMP_THREADS, "")
    return int(number) if number.isdecimal() else available().each(1)


def say_versions(like: RunFacts, manifest: Manifest, card: TaskCard | None) -> None:
    """Warn of versions that have changed since a run, as far as they are known before the start."""
    now = {**manifest.versions, **(card.versions if card else {})}
    for text in of_versions(versions_of(like.record), now):
        logger.warning("The curve may differ from that of %s. %s", like.id, text)
