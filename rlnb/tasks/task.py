"""A task as the kernel describes it: a name, a module on disk, selectors and overrides."""

from __future__ import annotations

import dataclasses
import html
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from rlnb import spec
from rlnb.configs import launcher_args as launcher_arguments
from rlnb.errors import CheckError, Problem, RlnbError, whole_number
from rlnb.settings import Root, options
from rlnb.spec import Json
from rlnb.storage.files import builtin, whole
from rlnb.storage.serial import to_json
from rlnb.tasks.source import (
    module_path,
    named_version,
    pinned,
    refuse_failed_cell,
    refuse_files_of_others,
    run_here,
    version_in_use,
)

if TYPE_CHECKING:
    from rlnb.configs.card import TaskCard
    from rlnb.tasks.agent import AgentConfig


class Task(spec.Task):
    """A task: an Isaac Lab env config and the changes to it. Made by :func:`rlnb.task`.

    It is equal to a :class:`rlnb.spec.Task` with the same values, which is what manifests and messages hold.
    """

    __slots__ = ()

    @classmethod
    def of(cls, task: spec.Task) -> Self:
        """Return a task with the values of another one."""
        return cls(**{field.name: getattr(task, field.name) for field in dataclasses.fields(task)})

    def card(self, *, python: str | None = None, asset_root: str | None = None) -> TaskCard:
        """Return the card of the task: config values with types, cameras, agents, assets.

        Cards are cached by source and versions. Without a cached card, the warm simulator resolves the task, which
        takes about a second, or 10 to 15 s if the simulator has to start first.

        Args:
            python: Command of the worker's interpreter; None takes ``rlnb.options.python``.
            asset_root: Folder or URL of robot assets; None takes ``rlnb.options.asset_root``.

        Raises:
            RlnbError: The task does not exist or does not resolve.
        """
        return task_card(self, python=python, asset_root=asset_root)

    def agent(
        self,
        library: str | None = None,
        name: str | None = None,
        *,
        python: str | None = None,
        asset_root: str | None = None,
    ) -> AgentConfig:
        """Return the agent config of the task for an RL library.

        Args:
            library: Name of the RL library; None takes the default library of the task's registration, or RSL-RL.
            name: Name of one of the task's agent configs, e.g. ``"rsl_rl_with_symmetry_cfg_entry_point"``, or
                ``"generic"`` for that of the library's plugin; None takes the task's own config for the library, or
                else the generic one. :func:`rlnb.train` takes the generic one only by its name if the task brings
                configs for other libraries, and other tasks bring configs for this one.
            python: Command of the worker's interpreter; None takes ``rlnb.options.python``.
            asset_root: Folder or URL of robot assets; None takes ``rlnb.options.asset_root``.

        Raises:
            NotFoundError: The library is not installed, or the task has no such agent config.
            RlnbError: The library has no simulator, the task does not resolve, or the config does not load.
        """
        return agent(self, library, name, python=python, asset_root=asset_root)

    def _repr_html_(self) -> str:
        """Return the card as HTML. It takes some seconds if the card is not cached and no simulator lives.

        A task that does not resolve, and one without Isaac Lab, is shown with the reason.
        """
        from rlnb.configs.card import card_html
        from rlnb.display.table import table
        from rlnb.hooks import plugins

        own = plugins.tasks().get(self.id)
        if own is not None and own.success is None:  # a plugin trains it without Isaac Lab
            return table(("", ""), [("task of", "a library without a simulator")], caption=self.id)
        try:
            return card_html(self.card(), self)
        except RlnbError as exc:
            return f"<b>{html.escape(self.id)}</b><pre>{html.escape(str(exc))}</pre>"


class Trained(Protocol):
    """What has trained a task: a :class:`rlnb.Run`."""

    def trained_task(self, *, trust: bool = False) -> spec.Task:
        """Return the task as it was trained, with the copy of its module."""
        ...


def task(
    name: str | Trained,
    *,
    num_envs: int | None = None,
    overrides: Mapping[str, Json] | None = None,
    presets: Sequence[str] | str = (),
    physics: str | None = None,
    renderer: str | None = None,
    launcher_args: Mapping[str, Json] | None = None,
    imports: Sequence[str] | str | None = None,
    success: str | None = None,
    trust: bool = False,
) -> Task:
    """Describe a task, without importing it. Returns at once.

    ``rlnb.task(run)`` is the task as that run has trained it: the copy of its module in the run's folder, even if the
    cell or the file has changed since, with the run's number of envs, overrides and selectors. Further arguments change
    it: ``overrides`` and ``launcher_args`` are added to those of the run, and any other argument replaces the run's.

    Args:
        name: Name of a ``%%task`` cell, ``"package.module:EnvCfg"``, a registered id, including those of Isaac Lab 2.x,
            or a run.
        num_envs: Environments in total, over all ranks; None keeps the task's own number.
        overrides: Env config values by dotted path, e.g. ``{"sim.dt": 0.005}``.
        presets: Isaac Lab's global presets.
        physics: Isaac Lab's physics selector, e.g. ``"newton_mjwarp"``.
        renderer: Isaac Lab's renderer selector, e.g. ``"newton_renderer"``.
        launcher_args: Arguments of Isaac Lab's launcher by name: ``kit_args``, ``experience``, ``livestream``,
            ``require_kit``, ``limit_cpu_threads``, ``width``, ``height``, ``max_visible_envs``, ``verbose`` and
            ``info``, with the meaning that they have there. Most of them are read only if Isaac Sim starts. Arguments
            that rlnb sets itself, such as ``device``, are refused.
        imports: Modules of your package that register tasks when they are imported, e.g. ``"my_project.tasks"``. The
            worker imports them before it looks for the task. A package with an entry point in the group
            ``isaaclab.tasks`` needs none. None takes ``rlnb.options.imports``, or those of the run.
        success: Success function as ``"module:function"``. ``function(env)`` returns a bool tensor of shape (num_envs,)
            that says whether an ending episode succeeded. Without one, an evaluation takes the task's own function, the
            termination term ``success``, or the rate that the env itself logs, in this order.
        trust: Whether to use a ``%%task`` cell or a run of another user, whose root this is too.

    Raises:
        CheckError: ``num_envs`` is not a positive whole number, an override is not a JSON value, a launcher argument is
            not valid, or ``imports`` has a text that is not the name of a module.
        RlnbError: The cell, a module that it imports, or the run belongs to another user, and ``trust`` is False; or
            ``name`` is neither a name nor a run.
        RunError: The run has no copy of its task's module, or has no task: it is that of a script or of stock Isaac
            Lab.
    """
    base = _base(name, trust=trust)
    num_envs = whole(num_envs)
    problems = [] if num_envs is None else whole_number("num_envs", num_envs, example=64)
    if not isinstance(overrides, Mapping | None):
        problems.append(Problem(what=f"overrides={overrides!r} is not a mapping.", fix='overrides={"sim.dt": 0.005}'))
        overrides = None
    for path, value in (overrides or {}).items():
        try:
            to_json(value)
        except RlnbError as exc:
            problems.append(Problem(what=f"override {path!r}: {exc}"))
    if launcher_args is not None:
        problems += launcher_arguments.check(launcher_args)
    modules = base.imports if imports is None else module_names(imports)
    problems += [
        Problem(what=f"imports={module!r} is not the name of a module.", fix='imports="my_project.tasks"')
        for module in modules
        if not _is_module_name(module)
    ]
    if problems:
        raise CheckError(f"task {base.id!r}", problems)
    return dataclasses.replace(
        base,
        num_envs=base.num_envs if num_envs is None else num_envs,
        presets=((presets,) if isinstance(presets, str) else tuple(presets)) or base.presets,
        physics=physics or base.physics,
        renderer=renderer or base.renderer,
        overrides={**base.overrides, **{path: builtin(value) for path, value in (overrides or {}).items()}},
        launcher_args={**base.launcher_args, **(launcher_args or {})},
        imports=modules,
        success=success or base.success,
    )


def _base(name: str | Trained, *, trust: bool) -> Task:
    """Return the task of a name or of a run, before the arguments of :func:`task` change it."""
    if isinstance(name, str):
        named = _named(options.folders, name, trust=trust)
        return Task.of(dataclasses.replace(named, imports=module_names(options.imports)))
    if not hasattr(name, "trained_task"):
        raise RlnbError(f'{name!r} is neither the name of a task nor a run. Use rlnb.task("Isaac-Cartpole-Direct").')
    return Task.of(name.trained_task(trust=trust))


def module_names(imports: Sequence[str] | str) -> tuple[str, ...]:
    """Return the value of ``imports=``, or of ``rlnb.options.imports``, as a tuple."""
    return (imports,) if isinstance(imports, str) else tuple(imports)


def _is_module_name(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


def _named(root: Root, name: str, *, trust: bool = False) -> spec.Task:
    """Return the task of a name, with its module if a ``%%task`` cell defines one.

    Raises:
        RlnbError: The module, or a file that it imports, belongs to another user, and ``trust`` is False.
    """
    refuse_failed_cell(root, name)
    module = module_path(root, name)
    if module not in run_here() and not os.path.isfile(module):  # also false if the root cannot be entered
        return spec.Task(id=name)
    current = version_in_use(module, name)
    if not trust:
        refuse_files_of_others(name, (module, *(module.parent / other for other in current.others)))
    return named_version(name, module, current)


def as_task(value: spec.Task | str | None, root: Root | None = None) -> spec.Task:
    """Return the task for a task or a name, with the version of its source that is used from now on.

    The source of the returned task is a copy that no later edit of the cell changes, and its hashes are those of this
    copy.

    Args:
        value: A task, or its name.
        root: Folder whose task modules are searched; None takes the folder in ``rlnb.options``.

    Raises:
        RlnbError: ``value`` is neither a task nor a name, or its files are not the recorded ones.
    """
    if not isinstance(value, str | spec.Task):
        use = "rlnb.task(run)" if hasattr(value, "trained_task") else 'rlnb.task("Isaac-Cartpole-Direct")'
        raise RlnbError(f"{value!r} is neither a task nor the name of one. Use {use}.")
    if isinstance(value, spec.Task):
        return pinned(value)
    imports = module_names(options.imports)
    return pinned(dataclasses.replace(_named(root or options.folders, value), imports=imports))


def task_card(task: spec.Task | str, *, python: str | None = None, asset_root: str | None = None) -> TaskCard:
    """Return the card of a task; see :meth:`rlnb.Task.card`."""
    from rlnb.tasks.card_cache import card_of

    return card_of(options.folders, as_task(task), python or options.python, asset_root or options.asset_root)


def agent(
    task: spec.Task | str,
    library: str | None = None,
    name: str | None = None,
    *,
    python: str | None = None,
    asset_root: str | None = None,
) -> AgentConfig:
    """Return the agent config of a task; see :meth:`rlnb.Task.agent`."""
    from rlnb.tasks.agent import agent_config

    return agent_config(as_task(task), library, name, python, asset_root)
