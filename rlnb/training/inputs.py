"""The runs and files that a library needs besides the task: the argument ``inputs`` of ``rlnb.train``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlnb.configs.card import MULTI_AGENT, TaskCard
from rlnb.contracts.libraries import Input, Library
from rlnb.errors import NotFoundError, Problem, RlnbError, did_you_mean
from rlnb.hooks import plugins
from rlnb.records.arguments import resolved_configs
from rlnb.records.facts import RunFacts, find_run
from rlnb.records.find import run_of
from rlnb.records.remote import refuse_remote
from rlnb.records.trust import require_trusted_owner
from rlnb.storage import files
from rlnb.storage.entries import MOST_FILES, MOST_FOLDERS, files_below, is_small

if TYPE_CHECKING:
    from rlnb.records.record import RunRecord
    from rlnb.settings import Root
    from rlnb.spec import Json, Task
    from rlnb.training.arguments import TrainArguments
    from rlnb.training.lookup import Lookup

KINDS = {"policy": "a policy", "rollouts": "recorded rollouts", "file": "a file", "folder": "a folder"}
"""Each kind of input in words."""
EXAMPLES = {
    "policy": "run",
    "rollouts": "run.evaluate(record=10_000).rollout",
    "file": '"path/of/file"',
    "folder": '"path/of/folder"',
}
"""A value for each kind of input, as text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """An input of a training, found on disk."""

    file: Path
    """The file, or the folder."""
    origin: str
    """Its origin, as in :attr:`rlnb.plugin.Manifest.inputs`."""
    policy_of: RunRecord | None = None
    """Run whose policy the file holds; None for another kind of input."""


def find_inputs(
    request: TrainArguments, task: Task, lookup: Lookup, agent: Mapping[str, Json], root: Root
) -> tuple[dict[str, InputFile], list[Problem]]:
    """Return the inputs of a training by name, and everything that makes them unsuitable.

    Args:
        request: The request.
        task: Its task.
        lookup: Its library and its task card.
        agent: Agent config values that the user passed.
        root: Folder of runs.
    """
    values = request.inputs or {}
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        return {}, [Problem(what=f"inputs={values!r} is not a mapping of names.", fix='inputs={"teacher": run}')]
    library = lookup.library
    if library is None or (library.simulator and lookup.agent is None):  # a problem of its own
        return {}, []
    config = {path: field.value for path, field in lookup.agent.fields.items()} if lookup.agent else {}
    config |= {path.removeprefix("+"): value for path, value in agent.items()}
    specs = {
        name: one
        for name, one in library.inputs.items()
        if all(config.get(path) == value for path, value in one.agent.items())
    }
    problems = [_superfluous(name, library, specs) for name in values if name not in specs]
    problems += [
        _missing(name, one.kind, library, request.init_from)
        for name, one in specs.items()
        if one.required and values.get(name) is None
    ]
    inputs: dict[str, InputFile] = {}
    for name, value in values.items():
        if name not in specs or value is None:
            continue
        try:
            inputs[name] = one = _find(name, value, specs[name], root, trust=request.trust)
        except RlnbError as exc:
            problems.append(Problem(what=str(exc)))
            continue
        if one.policy_of is not None:
            problems += _unsuitable(name, one.policy_of, task, library, lookup.card)
    return inputs, problems


def _superfluous(name: str, library: Library, specs: Mapping[str, Input]) -> Problem:
    """Return the problem of an input that the library does not take."""
    if name in library.inputs:
        needs = ", ".join(f"{path}={value!r}" for path, value in library.inputs[name].agent.items())
        what = f"{library.name} takes the input {name!r} only with the agent config values {needs}."
        return Problem(what=what, fix="Leave the input out, or use another agent config.")
    names = ", ".join(map(repr, specs)) or "none"
    what = f"{library.name} has no input {name!r}. Its inputs: {names}.{did_you_mean(name, specs)}"
    return Problem(what=what, fix="Use one of these." if specs else "Leave inputs out.")


def _missing(name: str, kind: str, library: Library, init_from: object) -> Problem:
    """Return the problem of an input that is missing."""
    fix = f"Use inputs={{{name!r}: {EXAMPLES[kind]}}}."
    if kind == "policy" and init_from is not None:
        origin = repr(init_from.id) if isinstance(init_from, RunFacts) else repr(str(init_from))
        fix = f"Use inputs={{{name!r}: {origin}}} in place of init_from."
    return Problem(what=f"{library.name} needs the input {name!r}, which is {KINDS[kind]}.", fix=fix)


def _find(name: str, value: object, spec: Input, root: Root, *, trust: bool) -> InputFile:
    """Return an input.

    Raises:
        RlnbError: There is no such run or file, or it is no input of this kind.
    """
    if isinstance(value, InputFile):  # of a run that is repeated
        return value
    subject = f"The input {name!r}"
    if not isinstance(value, RunFacts | str | Path):
        raise RlnbError(f"{subject}, {value!r}, is neither a run nor a file. Use {EXAMPLES[spec.kind]}.")
    record: RunRecord | None
    places = [value, root.runs / value] if not isinstance(value, RunFacts) else []
    below = [Path(os.path.abspath(path)) for path in places]  # the copy of a folder ".." needs a name
    file = next((path for path in below if files.there(path) and _is_input(path, spec.kind)), None)
    if file is None:
        run = _run(subject, value, spec.kind)
        if spec.kind != "policy":
            raise RlnbError(f"{subject} is {KINDS[spec.kind]}, and not a run. Use {EXAMPLES[spec.kind]}.")
        record, file = run.record, newest_of(run, subject)
    elif (record := run_of(file)) is not None:
        refuse_remote(record.folder, file)
    if spec.kind == "folder":
        _check_folder(subject, file)
    if spec.kind == "policy":
        record = _owner(subject, file, record, trust=trust)
    is_of_run = record is not None and file.is_relative_to(root.runs.absolute())
    origin = str(file.relative_to(root.runs.absolute()) if is_of_run else file)
    return InputFile(file=file, origin=origin, policy_of=record if spec.kind == "policy" else None)


def newest_of(run: RunFacts, subject: str) -> Path:
    """Return the newest sound checkpoint of a run, to take its weights or its policy.

    Args:
        run: The run.
        subject: Begin of the error: the argument that names the run.

    Raises:
        RlnbError: The run has none, or only on another machine.
    """
    checkpoints, state = run.checkpoints, f"{run.id} ({run.state})"
    newest = checkpoints.last_sound()
    if newest is None and checkpoints:
        raise RlnbError(f"{subject}: {state} {checkpoints.none_sound()} Use another run.")
    if newest is None:
        raise RlnbError(f"{subject}: {state} has no complete checkpoint yet. Wait for one, or use another run.")
    refuse_remote(run.record.folder, newest)
    return newest


def _is_input(path: Path, kind: str) -> bool:
    """Return whether a path is a file, or the folder of a checkpoint; for the kind ``"folder"``, a folder."""
    record = run_of(path)
    if kind == "folder":
        return path.is_dir() and not (record is not None and path == record.path)
    return path.is_file() or (record is not None and path in record.checkpoints)


def _check_folder(subject: str, folder: Path) -> None:
    """Check that a folder can be copied whole.

    Raises:
        RlnbError: It has no files, too many, or a link to anything else.
    """
    subject = f"{subject}, {folder},"
    if not is_small(folder):
        limits = f"{MOST_FOLDERS:,} folders or {MOST_FILES:,} files"
        raise RlnbError(f"{subject} has more than {limits}, which are too many for a copy. Use a smaller folder.")
    paths = [*files_below(folder)]
    if not paths:
        raise RlnbError(f"{subject} has no files. Use another folder.")
    if link := next((path for path in paths if path.is_symlink() and not path.is_file()), None):
        raise RlnbError(f"{subject} has the link {link}, which does not lead to a file. Use a folder of files.")


def _run(subject: str, value: RunFacts | str | Path, kind: str) -> RunFacts:
    if isinstance(value, RunFacts):
        return value
    try:
        return find_run(str(value))
    except NotFoundError as exc:
        if kind == "folder":
            raise NotFoundError(f"{subject}, {str(value)!r}, is not a folder. Use {EXAMPLES[kind]}.") from exc
        raise NotFoundError(f"{subject}, {str(value)!r}, is neither a file nor a run. {exc}") from exc


def _owner(subject: str, file: Path, record: RunRecord | None, *, trust: bool) -> RunRecord:
    """Return the run of a policy's checkpoint.

    Raises:
        RlnbError: The checkpoint belongs to no run, is torn or not finite, or is another user's and not trusted.
    """
    if record is None:
        raise RlnbError(
            f"{subject}, {file}, belongs to no run, so its library and agent config are unknown. "
            "Use a run, or a checkpoint in the folder of a run."
        )
    if fault := record.checkpoints.fault(file):
        raise RlnbError(f"{subject}, {file}, {fault}. {record.checkpoints.other_fix(file)}")
    require_trusted_owner(record, trust=trust)
    return record


def _unsuitable(name: str, record: RunRecord, task: Task, library: Library, card: TaskCard | None) -> Iterator[Problem]:
    """Find why the policy of a run cannot act in the envs of a task."""
    subject, trainer = f"The input {name!r}, {record.id},", plugins.libraries().get(record.library)
    if trainer is None:
        yield Problem(
            what=f"{subject} was trained with {record.library}, which is not installed.",
            fix=f"Install the plugin of {record.library}.",
        )
        return
    if not trainer.simulator:
        yield Problem(
            what=f"{subject} is of {trainer.name}, which has no policies.", fix="Use a run of another library."
        )
        return
    if card is None:
        return
    if (agent := card.agents.get(trainer.name)) is not None and agent.missing:
        packages = " ".join(map(shlex.quote, trainer.requires))
        yield Problem(
            what=f"{subject} needs {', '.join(agent.missing)} in the worker's interpreter.",
            fix=f"python -m pip install {packages}",
        )
    if card.workflow == MULTI_AGENT and trainer.multi_agent != library.multi_agent:
        agents = {True: "several agents", False: "the agents joined into one"}
        theirs, ours = agents[trainer.multi_agent], agents[library.multi_agent]
        yield Problem(
            what=f"{subject} acts for {theirs}, but {library.name} has {ours}.",
            fix=f"Use a run of {library.name}.",
        )
    if (record.task, record.manifest.task.overrides) != (task.id, task.overrides):
        yield from _other_spaces(subject, record, task, card)


def _other_spaces(subject: str, record: RunRecord, task: Task, card: TaskCard) -> Iterator[Problem]:
    """Find other actions, and observations that no group of the task has, as far as the configs show them.

    The worker compares the rest when the policy is loaded. The env may add groups to those of a direct task's config.
    """
    theirs = {path.removeprefix("env."): value for path, value in resolved_configs(record.folder).items()}
    ours = {**{path: field.value for path, field in card.fields.items()}, **task.overrides}
    sizes = [one.get("action_space") for one in (theirs, ours)]
    if all(isinstance(size, int) for size in sizes) and sizes[0] != sizes[1]:
        what = f"{subject} has {sizes[0]} actions, but {task.id} has {sizes[1]}."
        yield Problem(what=what, fix=f"Use a run of {task.id}.")
    actions = [_terms(one, "actions") for one in (theirs, ours)]
    if all(actions) and actions[0] != actions[1]:
        names = [", ".join(sorted(terms)) for terms in actions]
        what = f"{subject} has the actions {names[0]}, but {task.id} has {names[1]}."
        yield Problem(what=what, fix=f"Use a run of {task.id}.")
    observations = _terms(theirs, "observations.policy")
    groups = {group: _terms(ours, f"observations.{group}") for group in _terms(ours, "observations")}
    if observations and groups and observations not in groups.values():
        terms = ", ".join(sorted(observations))
        what = f"{subject} observes {terms}, which is no observation group of {task.id}."
        yield Problem(what=what, fix=f"Use a run of {task.id}, or add such a group to the task.")


def _terms(values: Mapping[str, Json], group: str) -> set[str]:
    """Return the names below a path that have values below them: the terms of a manager's group, or the groups."""
    begin = f"{group}."
    below = (path.removeprefix(begin).split(".") for path in values if path.startswith(begin))
    return {parts[0] for parts in below if len(parts) > 1}
