"""The arguments of ``rlnb.train``, defined once for the function and the command ``rlnb train``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlnb.configs.agent import AgentArgument
from rlnb.diagnosis.rules import DIAGNOSIS, FAILED, FUNCTION
from rlnb.errors import RlnbError, did_you_mean
from rlnb.hooks import plugins
from rlnb.jobs.alerts import AlertFunction
from rlnb.spec import Task
from rlnb.storage.files import builtin, whole

if TYPE_CHECKING:
    from rlnb.contracts.launchers import Launcher
    from rlnb.records.facts import RunFacts

OF_SCRIPTS = ("script", "args", "nproc_per_node", "launcher", "python", "asset_root", "tags", "warm", "like")
"""Arguments of ``rlnb.train`` that apply to a script. A script gets all its other settings through ``args``."""
WHOLE_NUMBERS = ("max_iterations", "max_frames", "seed", "num_envs", "nproc_per_node", "keep", "film_every")
"""Arguments of ``rlnb.train`` that are whole numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainRequest:
    """The arguments of :func:`rlnb.train`, which documents each field.

    Fields with a help text are also options of the command ``rlnb train``.
    """

    task: Task | str | None = None
    """Task, or its name; None for a script."""
    script: str | Path | None = None
    """Path of a training script to start instead of a task."""
    args: Sequence[str] = ()
    """Arguments of the script."""
    library: str | None = field(default=None, metadata={"help": "RL library; default: the task's own, or rsl_rl."})
    """Name of the RL library; None takes the default library of the task's registration, or RSL-RL."""
    max_iterations: int | None = field(default=None, metadata={"help": "Learning iterations."})
    """Learning iterations; None keeps the number in the agent config."""
    max_frames: int | None = field(default=None, metadata={"help": "Env transitions, in place of iterations."})
    """Frames (env transitions over all ranks), in place of :attr:`max_iterations`."""
    seed: int = field(default=42, metadata={"help": "Seed of the env and the policy."})
    """Seed of the env and the policy."""
    deterministic: bool = field(default=False, metadata={"help": "Same numbers from the same seed, also on a GPU."})
    """Whether the same seed has to give the same numbers, also on a GPU."""
    num_envs: int | None = field(default=None, metadata={"help": "Total number of envs."})
    """Total number of envs across all ranks; None keeps the task's own number."""
    agent: AgentArgument = None
    """Agent config: values by dotted path or nested, the path of a YAML file, a name, or a list of these."""
    device: str = field(default="auto", metadata={"help": "auto, cpu, cuda or cuda:N."})
    """``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"auto"``."""
    nproc_per_node: int | Literal["auto"] | None = None
    """Ranks on each node, or ``"auto"``; None uses the launcher's number if it has one, otherwise 1."""
    init_from: RunFacts | str | Path | None = field(
        default=None, metadata={"help": "Run or checkpoint that supplies the initial weights."}
    )
    """Run or checkpoint that supplies the initial weights; None initializes them at random."""
    inputs: Mapping[str, RunFacts | str | Path] | None = None
    """Runs or files that the library needs besides the task, by the library's names for them."""
    trust: bool = field(default=False, metadata={"help": "Allow a checkpoint that holds more than weights."})
    """Whether the checkpoints of :attr:`init_from` and :attr:`inputs` may hold more than weights, and whether a policy
    may come from a run of another user."""
    keep: int | None = field(
        default=None, metadata={"help": "Newest checkpoints to keep, plus the best; default: all."}
    )
    """Number of newest checkpoints to keep, in addition to the best; None keeps all."""
    film_every: int | None = field(default=None, metadata={"help": "Iterations between two films; default: none."})
    """Learning iterations between two films of the training; None makes none."""
    alerts: AlertArgument = ()
    """Rules of alerts."""
    launcher: Launcher | None = None
    """Launcher that starts the run; None starts it on this machine."""
    python: str | None = field(default=None, metadata={"help": "Command of the worker's interpreter."})
    """Command of the worker's interpreter; None uses ``rlnb.options.python``."""
    asset_root: str | None = field(default=None, metadata={"help": "Folder or URL of robot assets."})
    """Folder or URL of robot assets; None uses ``rlnb.options.asset_root``."""
    tags: Sequence[str] = ()
    """Tags to find the run by."""
    warm: bool | None = None
    """Whether the living simulator may become the run's process; None uses ``rlnb.options.warm``, and never takes a
    simulator in a job of a cluster."""
    like: RunFacts | str | Path | None = None
    """Run to repeat, its id or its folder: it supplies every argument that the call leaves out."""

    @classmethod
    def of(cls, task: Task | str | None, arguments: Mapping[str, Any]) -> TrainRequest:
        """Return a request built from the arguments of a call.

        Args:
            task: The task, or its name; None if ``arguments`` has a script.
            arguments: All other arguments, by name.

        Raises:
            TypeError: A name in ``arguments`` is not an argument of ``rlnb.train``.
            RlnbError: Both task and script are missing, or the launcher is a string.
        """
        names = [argument.name for argument in dataclasses.fields(cls)]
        for name in arguments:
            if name not in names:
                hint = did_you_mean(name, names)
                raise TypeError(f"rlnb.train() got an unexpected keyword argument {name!r}.{hint}")
        if any(isinstance(value, float) or type(value).__module__ == "numpy" for value in arguments.values()):
            read = {name: whole if name in WHOLE_NUMBERS else builtin for name in arguments}
            arguments = {name: read[name](value) for name, value in arguments.items()}
        request = cls(task=task, **arguments)
        if request.launcher is not None and not hasattr(request.launcher, "submit"):
            calls = ", ".join(f"rlnb.{name}(...)" for name in sorted(plugins.launchers()))
            kind = "a name, not a launcher" if isinstance(request.launcher, str) else "not a launcher"
            raise RlnbError(f"launcher={request.launcher!r} is {kind}. Use one of {calls}.")
        if request.library is not None and not isinstance(request.library, str):
            raise RlnbError(f"library={request.library!r} is not text. Use one of {', '.join(plugins.libraries())}.")
        if request.script is None and task is None:
            raise RlnbError('rlnb.train() needs a task, as in rlnb.train("Isaac-Cartpole-Direct"), or a script.')
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
    """Return the signature of ``rlnb.train``: the task, then all other arguments, which are keyword-only."""
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if argument.name == "task" else inspect.Parameter.KEYWORD_ONLY,
            default=argument.default,
            annotation=str(argument.type).replace("RunFacts", "Run"),
        )
        for argument in dataclasses.fields(TrainRequest)
    ]
    return inspect.Signature(parameters, return_annotation="Run")


# -- alerts ----------------------------------------------------------------------------------------------------------


AlertArgument = bool | str | AlertFunction | Sequence[str | AlertFunction]
"""One rule, or several; True stands for any symptom of the diagnosis and for a failure."""


def split_alerts(alerts: AlertArgument) -> tuple[tuple[str, ...], dict[str, AlertFunction]]:
    """Return all rules as text, and the functions among them by their text. Anything else becomes text that is no rule.

    The text of a function is its name, with a number if there are several of the same name.
    """
    if isinstance(alerts, bool):
        return ((DIAGNOSIS, FAILED) if alerts else ()), {}
    several = [alerts] if isinstance(alerts, str) or callable(alerts) or not isinstance(alerts, Sequence) else alerts
    texts: list[str] = []
    functions: dict[str, AlertFunction] = {}
    for rule in several:
        if callable(rule):
            name = f"{FUNCTION}{getattr(rule, '__name__', type(rule).__name__)}"
            count = sum(other == name or other.startswith(f"{name} #") for other in functions)
            functions[name := f"{name} #{count + 1}" if count else name] = rule
            texts.append(name)
        else:
            texts.append(str(rule))
    return tuple(texts), functions
