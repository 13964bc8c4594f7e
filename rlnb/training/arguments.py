"""The arguments of ``rlnb.train``, declared once. The function, its docs and checks, the command and forms follow."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rlnb.configs.agent import AgentArgument
from rlnb.diagnosis.rules import DIAGNOSIS, FAILED, FUNCTION
from rlnb.errors import ArgumentError, RlnbError, did_you_mean
from rlnb.hooks import plugins
from rlnb.jobs.alerts import AlertFunction
from rlnb.spec import Json, Manifest, Task
from rlnb.storage.files import builtin, whole

if TYPE_CHECKING:
    from rlnb.contracts.launchers import Launcher
    from rlnb.records.facts import RunFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """An argument of :func:`rlnb.train`. Everything that lists the arguments is made from these descriptions."""

    doc: str
    """Description, as in the docstring of ``rlnb.train``."""
    recorded: str = ""
    """Dotted path of its value in a :class:`rlnb.plugin.Manifest`; empty if it is not recorded as it was given."""
    option: str = ""
    """Help text of its option of ``rlnb train``; empty if it has none, or one that the command declares itself."""
    label: str = ""
    """Label of its field in the form of JupyterLab; empty if it has none, or one that the form declares itself."""
    of_pages: bool = False
    """Whether a page may give it. A page names no code and no file, which the check of a form would execute or read."""
    choices: tuple[str, ...] = ()
    """Texts that the field offers."""
    several: bool = False
    """Whether the field takes several texts, with commas between them."""
    example: int | None = None
    """A number to suggest, for an argument that has to be a positive whole number."""
    of_scripts: bool = False
    """Whether it applies to a script too, which gets all its other settings through ``args``."""
    none: bool = False
    """Whether None is a value of its own where a run is repeated, as in ``init_from=None``."""


def argument(default: object, doc: str, **facts: Any) -> Any:
    """Declare a field of :class:`TrainArguments`; ``facts`` are those of an :class:`Argument`."""
    return field(default=default, metadata={"argument": Argument(doc=doc, **facts)})


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainArguments:
    """The arguments of :func:`rlnb.train`."""

    task: Task | str | None = argument(
        None,
        """A task, or its name (see :func:`rlnb.task`).""",
    )
    script: str | Path | None = argument(
        None,
        """Path of a training script to start instead of a task, such as Isaac Lab's
        ``scripts/reinforcement_learning/rsl_rl/train.py``. It runs in the run's ``logs`` folder, and the metrics come
        from the event files that it writes there. Only ``args``, ``nproc_per_node`` (a number), ``launcher``,
        ``python``, ``asset_root``, ``name``, ``tags`` and ``like`` apply to a script; all other arguments are refused,
        except ``warm``, which has no effect.""",
        of_scripts=True,
    )
    args: Sequence[str] = argument(
        (),
        """Arguments of the script.""",
        of_scripts=True,
    )
    name: str = argument(
        "",
        """Name of the run in tables, curves, reports and trackers, such as ``"small steps"``. ``run.name = ...``
        changes it at any time. Several runs may have the same name.""",
        recorded="name",
        of_pages=True,
        of_scripts=True,
        option="Name of the run.",
        label="Name",
    )
    library: str | None = argument(
        None,
        """Name of the RL library; None takes the one that the task's registration names as its default
        (``default_agent``), or RSL-RL.""",
        recorded="library",
        of_pages=True,
        option="RL library; default: the task's own, or rsl_rl.",
    )
    max_iterations: int | None = argument(
        None,
        """Learning iterations; None keeps the number in the agent config.""",
        recorded="max_iterations",
        of_pages=True,
        example=150,
        option="Learning iterations.",
        label="Iterations",
    )
    max_frames: int | None = argument(
        None,
        """Frames to train for, which are env transitions over all ranks, in place of ``max_iterations``. The training
        ends with the iteration that reaches them. Libraries of any kind can be compared by frames, while an iteration
        of an off-policy library may be a single env step.""",
        recorded="max_frames",
        of_pages=True,
        example=1_000_000,
        option="Env transitions, in place of iterations.",
    )
    seed: int = argument(
        42,
        """Seed of env and policy. The seed in the agent config is not used. A list, ``seed=[1, 2, 3]``, starts a run
        for each seed, and the call returns :class:`rlnb.Runs`.""",
        recorded="seed",
        of_pages=True,
        option="Seed of the env and the policy.",
        label="Seed",
    )
    deterministic: bool = argument(
        False,
        """Whether the same seed gives the same numbers on a GPU too. It is the ``--deterministic`` of Isaac Lab, for
        physics, rendering and torch. Without it, training runs on a GPU differ between processes; on a CPU with the
        same number of threads they are equal anyway. It costs speed and memory: each rank has one thread, unless
        OMP_NUM_THREADS is set, and the run always gets a process of its own. Solvers, sensors and operators of torch
        that cannot be deterministic end the run with an error.""",
        recorded="deterministic",
        of_pages=True,
        option="Same numbers from the same seed, also on a GPU.",
    )
    num_envs: int | None = argument(
        None,
        """Environments in total, over all ranks; None keeps the task's own number.""",
        recorded="task.num_envs",
        of_pages=True,
        example=64,
        option="Total number of envs.",
        label="Environments",
    )
    agent: AgentArgument = argument(
        None,
        """Agent config values by dotted path (``{"algorithm.learning_rate": 3e-4}``) or nested, the path of a YAML
        file, or the name of one of the task's agent configs (``"rsl_rl_with_symmetry_cfg_entry_point"``), which
        :meth:`rlnb.Task.agent` lists. A list combines them; later values replace earlier ones. Without a name, the
        training uses the task's own config for the library, or the plugin's generic one if the task brings none for
        any library; ``"generic"`` chooses the generic one. A ``+`` before a path adds a value that the config lacks
        (``{"+normalize_input": True}``). Nothing can be added to the configs of RSL-RL, which are classes, but a value
        without a default may be a group: ``{"algorithm": {"rnd_cfg": {"weight": 0.1}}}``. A value that contradicts
        another argument, such as ``seed``, is refused, and so is one that rlnb sets itself; in the file of a whole run
        (``logs/params/agent.yaml``), such values do not count.""",
    )
    device: str = argument(
        "auto",
        """``"cpu"``, ``"cuda"``, ``"cuda:1"``, or ``"auto"``, which takes a GPU if the machine has one.""",
        recorded="resources.device",
        of_pages=True,
        option="auto, cpu, cuda or cuda:N.",
        label="Device",
        choices=("auto", "cpu", "cuda"),
    )
    nproc_per_node: int | Literal["auto"] | None = argument(
        None,
        """Worker processes (ranks) on each machine, which share the envs. None is one rank, or on a cluster one rank
        for each requested GPU. ``"auto"`` is one rank for each GPU, or fewer if they could not share the envs equally.
        On this machine without a GPU, ``"auto"`` is the number that trains the task fastest, which is measured once
        (about a minute per candidate).""",
        recorded="resources.nproc_per_node",
        of_pages=True,
        example=1,
        of_scripts=True,
        none=True,
        label="Processes per node",
        choices=("auto",),
    )
    init_from: RunFacts | str | Path | None = argument(
        None,
        """Weights to start from: a run or its id, for the run's last checkpoint, or the path of a checkpoint.
        Optimiser and counters start anew; use ``run.resume()`` to continue with them.""",
        none=True,
        of_pages=True,
        option="Run or checkpoint that supplies the initial weights.",
        label="Run with the first weights",
    )
    inputs: Mapping[str, RunFacts | str | Path] | None = argument(
        None,
        """Runs or files that the library needs besides the task, by the library's names for them, such as
        ``{"teacher": run}`` for a distillation (:attr:`rlnb.plugin.Library.inputs`). A run, or its id, stands for its
        last checkpoint. A policy may be of any library. The new run copies each file, so that the other run can be
        deleted, and ``run.manifest.inputs`` records where it comes from.""",
        none=True,
    )
    trust: bool = argument(
        False,
        """Whether the checkpoints of ``init_from`` and ``inputs`` may hold more than weights, and whether to take a
        policy from a run of another user, whose task is then imported.""",
        option="Allow a checkpoint that holds more than weights.",
    )
    keep: int | None = argument(
        None,
        """Number of newest checkpoints to keep, in addition to the best by reward; None keeps all.""",
        recorded="keep",
        of_pages=True,
        example=5,
        none=True,
        option="Newest checkpoints to keep, plus the best; default: all.",
    )
    film_every: int | None = argument(
        None,
        """Learning iterations between two films of the training (``run.films``); None makes none. A film shows four
        envs for four seconds. Films take about 2 % of the training's time; one that would take more has fewer frames,
        or is left out.""",
        recorded="film_every",
        of_pages=True,
        example=50,
        none=True,
        option="Iterations between two films; default: none.",
        label="Iterations between films",
    )
    alerts: AlertArgument = argument(
        (),
        """Rules of alerts: ``"diagnosis"`` for any symptom that :meth:`rlnb.Run.diagnose` knows, the name of one,
        ``"failed"``, ``"ended"``, a condition on metrics such as ``"iteration > 100 and reward < 5"``, or a function
        that takes the run and returns the text of an alert, or None. True stands for ``["diagnosis", "failed"]``. Each
        rule alerts once for each job. The node of the training looks for alerts (``run.alerts``), so only functions
        need this notebook, which calls them. An alert is shown in the notebook and as a notification in JupyterLab,
        and is sent to the webhook in the environment variable ``RLNB_ALERT_WEBHOOK``. The last steps are then recorded
        (``run.flight``).""",
        recorded="alerts",
        of_pages=True,
        label="Alerts",
        several=True,
    )
    launcher: Launcher | None = argument(
        None,
        """Launcher that starts the training; None is this machine.""",
        of_scripts=True,
        none=True,
    )
    python: str | None = argument(
        None,
        """Command of the worker's interpreter; None takes ``rlnb.options.python``.""",
        recorded="python",
        of_scripts=True,
        none=True,
        option="Command of the worker's interpreter.",
    )
    asset_root: str | None = argument(
        None,
        """Folder or URL of robot assets; None takes ``rlnb.options.asset_root``. A script gets it as
        ISAACSIM_ASSET_ROOT.""",
        recorded="asset_root",
        of_scripts=True,
        none=True,
        option="Folder or URL of robot assets.",
    )
    tags: Sequence[str] = argument(
        (),
        """Tags by which the run can be found.""",
        recorded="tags",
        of_pages=True,
        label="Tags",
        several=True,
        of_scripts=True,
    )
    warm: bool | None = argument(
        None,
        """Whether the warm simulator may become the run's process; None takes ``rlnb.options.warm``. With a launcher
        of a cluster, None takes no simulator, and True lets the simulator that holds a node of the same launcher train
        there, at most until the end of its job.""",
        of_scripts=True,
        none=True,
    )
    like: RunFacts | str | Path | None = argument(
        None,
        """Run to repeat, or its id or folder. Every argument that the call leaves out comes from it: the task with the
        copy of its module in the run's folder, library, resolved agent config, seed, length, ranks, device, weights to
        start from, inputs, alerts and launcher, but neither its name nor its tags nor ``warm`` nor ``trust``. Values in
        ``agent`` are added to those of the run; the name of an agent config, or another library, replaces them. None
        counts as left out, unless it is a value by the descriptions above, as in ``init_from=None``. On a CPU, and on a
        GPU with ``deterministic=True``, the curve is the same bit by bit, as long as versions and machine are. What
        differs is said in a warning, and in the table and the report of the new run. A run of another user needs
        ``trust=True``.""",
        of_scripts=True,
        none=True,
    )

    @classmethod
    def of(cls, task: Task | str | None, arguments: Mapping[str, Any]) -> TrainArguments:
        """Return a request built from the arguments of a call.

        Args:
            task: The task, or its name; None if ``arguments`` has a script.
            arguments: All other arguments, by name.

        Raises:
            ArgumentError: A name in ``arguments`` is not an argument of ``rlnb.train``.
            RlnbError: Both task and script are missing, or the launcher is a string.
        """
        for name in arguments:
            if name not in TRAIN_ARGUMENTS:
                hint = did_you_mean(name, TRAIN_ARGUMENTS)
                raise ArgumentError(f"rlnb.train() got an unexpected keyword argument {name!r}.{hint}")
        if any(isinstance(value, float) or type(value).__module__ == "numpy" for value in arguments.values()):
            whole_numbers = {field.name for field in dataclasses.fields(cls) if takes_whole_numbers(field.name)}
            read = {name: whole if name in whole_numbers else builtin for name in arguments}
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
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if not TRAIN_ARGUMENTS[field.name].of_scripts and getattr(self, field.name) != field.default
        }
        return values | ({"nproc_per_node": "auto"} if self.nproc_per_node == "auto" else {})


TRAIN_ARGUMENTS: Mapping[str, Argument] = {
    field.name: field.metadata["argument"] for field in dataclasses.fields(TrainArguments)
}
"""The arguments of ``rlnb.train`` by name."""


def takes_whole_numbers(name: str) -> bool:
    """Return whether an argument takes whole numbers, perhaps among other values."""
    types = {field.name: str(field.type) for field in dataclasses.fields(TrainArguments)}
    return re.search(r"\bint\b", types[name]) is not None


def recorded_arguments(manifest: Manifest) -> dict[str, Json]:
    """Return the arguments of a run that its manifest has as they were given, by name."""
    return {
        name: attrgetter(argument.recorded)(manifest) for name, argument in TRAIN_ARGUMENTS.items() if argument.recorded
    }


def signature() -> inspect.Signature:
    """Return the signature of ``rlnb.train``: the task, then all other arguments, which are keyword-only."""
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if field.name == "task" else inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=str(field.type).replace("RunFacts", "Run"),
        )
        for field in dataclasses.fields(TrainArguments)
    ]
    return inspect.Signature(parameters, return_annotation="Run")


def docstring(text: str | None) -> str:
    """Return the docstring of ``rlnb.train``: a text with the descriptions of the arguments before its ``Returns:``."""
    lines = (f"{name}: {inspect.cleandoc(argument.doc)}" for name, argument in TRAIN_ARGUMENTS.items())
    described = "\n".join(textwrap.indent(line.replace("\n", "\n    "), "    ") for line in lines)
    return inspect.cleandoc(text or "").replace("Returns:", f"Args:\n{described}\n\nReturns:", 1)


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
