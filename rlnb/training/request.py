"""The arguments of ``rlnb.train``, defined once for the function and the command."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlnb import plugins
from rlnb.errors import RlnbError, did_you_mean
from rlnb.spec import Json, Task

if TYPE_CHECKING:
    from rlnb.contracts import Launcher
    from rlnb.run.run import Run

OF_SCRIPTS = ("script", "args", "nproc_per_node", "launcher", "python", "tags", "warm")
"""Arguments of ``rlnb.train`` that apply to a script. A script takes everything else as its own arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainRequest:
    """The arguments of :func:`rlnb.train`, which documents each field.

    Fields with a help text are options of the command ``rlnb train`` too.
    """

    task: Task | str | None = None
    """Task, or its name; None for a script."""
    script: str | Path | None = None
    """Path of a training script to start instead of a task."""
    args: Sequence[str] = ()
    """Arguments of the script."""
    library: str = field(default="rsl_rl", metadata={"help": "RL library."})
    """Name of the RL library."""
    max_iterations: int | None = field(default=None, metadata={"help": "Learning iterations."})
    """Learning iterations; None keeps the number in the agent config."""
    seed: int = field(default=42, metadata={"help": "Seed of env and policy."})
    """Seed of env and policy."""
    num_envs: int | None = field(default=None, metadata={"help": "Environments in total."})
    """Environments in total, over all ranks; None keeps the task's own number."""
    agent: Mapping[str, Json] | str | Path | None = None
    """Agent config values, by dotted path or nested, or the path of a YAML file."""
    device: str = field(default="auto", metadata={"help": "auto, cpu, cuda or cuda:N."})
    """``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"auto"``."""
    nproc_per_node: int | Literal["auto"] | None = None
    """Ranks on each machine, or ``"auto"``; None takes the launcher's number, or one."""
    init_from: Run | str | Path | None = field(
        default=None, metadata={"help": "Run or checkpoint whose weights to start from."}
    )
    """Run or checkpoint whose weights to start from; None starts from fresh weights."""
    trust: bool = field(default=False, metadata={"help": "Load a checkpoint that holds more than weights."})
    """Whether the checkpoint of :attr:`init_from` may hold more than weights."""
    keep: int | None = field(default=None, metadata={"help": "Checkpoints to keep, plus the best; default: all."})
    """Number of newest checkpoints to keep, in addition to the best; None keeps all."""
    launcher: Launcher | None = None
    """Launcher of the training; None is this machine."""
    python: str | None = field(default=None, metadata={"help": "Command of the worker's interpreter."})
    """Command of the worker's interpreter; None takes ``rlnb.options.python``."""
    asset_root: str | None = field(default=None, metadata={"help": "Folder or URL of robot assets."})
    """Folder or URL of robot assets; None takes ``rlnb.options.asset_root``."""
    tags: Sequence[str] = ()
    """Tags by which the run can be found."""
    warm: bool | None = None
    """Whether the living simulator may become the run's process; None takes ``rlnb.options.warm``."""

    @classmethod
    def of(cls, task: Task | str | None, arguments: Mapping[str, Any]) -> TrainRequest:
        """Return the request for the arguments of a call.

        Args:
            task: The task, or its name; None if ``arguments`` has a script.
            arguments: All other arguments, by name.

        Raises:
            TypeError: ``rlnb.train`` has no argument of that name.
            RlnbError: Both task and script are missing, or the launcher is given by its name.
        """
        names = [argument.name for argument in dataclasses.fields(cls)]
        for name in arguments:
            if name not in names:
                hint = did_you_mean(name, names)
                raise TypeError(f"rlnb.train() got an unexpected keyword argument {name!r}.{hint}")
        request = cls(task=task, **arguments)
        if isinstance(request.launcher, str):
            calls = ", ".join(f"rlnb.{name}(...)" for name in sorted(plugins.launchers()))
            raise RlnbError(f"launcher={request.launcher!r} is a name, not a launcher. Use one of {calls}.")
        if request.script is None and task is None:
            raise RlnbError('rlnb.train() needs a task, such as rlnb.train("Isaac-Cartpole-Direct"), or a script.')
        return request

    def refused_by_a_script(self) -> dict[str, Any]:
        """Return the given arguments that do not apply to a script, by name."""
        values = {
            argument.name: getattr(self, argument.name)
            for argument in dataclasses.fields(self)
            if argument.name not in OF_SCRIPTS and getattr(self, argument.name) != argument.default
        }
        return values | ({"nproc_per_node": "auto"} if self.nproc_per_node == "auto" else {})


def signature() -> inspect.Signature:
    """Return the signature of ``rlnb.train``: the task, then all other arguments as keywords."""
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if argument.name == "task" else inspect.Parameter.KEYWORD_ONLY,
            default=argument.default,
            annotation=argument.type,
        )
        for argument in dataclasses.fields(TrainRequest)
    ]
    return inspect.Signature(parameters, return_annotation="Run")
