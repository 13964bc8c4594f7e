# Written by tests/rig/stub.py.
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rlnb.configs.agent import AgentArgument
from rlnb.contracts.launchers import Launcher
from rlnb.errors import Problem
from rlnb.run.run import Run
from rlnb.spec import Task
from rlnb.training.arguments import AlertArgument

def train(
    task: Task | str | None = None,
    *,
    script: str | Path | None = None,
    args: Sequence[str] = (),
    name: str = "",
    library: str | None = None,
    max_iterations: int | None = None,
    max_frames: int | None = None,
    seed: int = 42,
    deterministic: bool = False,
    num_envs: int | None = None,
    agent: AgentArgument = None,
    device: str = "auto",
    nproc_per_node: int | Literal["auto"] | None = None,
    init_from: Run | str | Path | None = None,
    inputs: Mapping[str, Run | str | Path] | None = None,
    trust: bool = False,
    keep: int | None = None,
    film_every: int | None = None,
    alerts: AlertArgument = (),
    launcher: Launcher | None = None,
    python: str | None = None,
    asset_root: str | None = None,
    tags: Sequence[str] = (),
    warm: bool | None = None,
    like: Run | str | Path | None = None,
) -> Run:
    """Start a training and return its run at once. The training continues if this process ends.

    Args:
        task: A task, or its name (see :func:`rlnb.task`).
        script: Path of a training script to start instead of a task, such as Isaac Lab's
            ``scripts/reinforcement_learning/rsl_rl/train.py``. It runs in the run's ``logs`` folder, and the metrics come
            from the event files that it writes there. Only ``args``, ``nproc_per_node`` (a number), ``launcher``,
            ``python``, ``asset_root``, ``name``, ``tags`` and ``like`` apply to a script; all other arguments are refused,
            except ``warm``, which has no effect.
        args: Arguments of the script.
        name: Name of the run in tables, curves, reports and trackers, such as ``"small steps"``. ``run.name = ...``
            changes it at any time. Several runs may have the same name.
        library: Name of the RL library; None takes the one that the task's registration names as its default
            (``default_agent``), or RSL-RL.
        max_iterations: Learning iterations; None keeps the number in the agent config.
        max_frames: Frames to train for, which are env transitions over all ranks, in place of ``max_iterations``. The training
            ends with the iteration that reaches them. Libraries of any kind can be compared by frames, while an iteration
            of an off-policy library may be a single env step.
        seed: Seed of env and policy. The seed in the agent config is not used. A list, ``seed=[1, 2, 3]``, starts a run
            for each seed, and the call returns :class:`rlnb.Runs`.
        deterministic: Whether the same seed gives the same numbers on a GPU too. It is the ``--deterministic`` of Isaac Lab, for
            physics, rendering and torch. Without it, training runs on a GPU differ between processes; on a CPU with the
            same number of threads they are equal anyway. It costs speed and memory: each rank has one thread, unless
            OMP_NUM_THREADS is set, and the run always gets a process of its own. Solvers, sensors and operators of torch
            that cannot be deterministic end the run with an error.
        num_envs: Environments in total, over all ranks; None keeps the task's own number.
        agent: Agent config values by dotted path (``{"algorithm.learning_rate": 3e-4}``) or nested, the path of a YAML
            file, or the name of one of the task's agent configs (``"rsl_rl_with_symmetry_cfg_entry_point"``), which
            :meth:`rlnb.Task.agent` lists. A list combines them; later values replace earlier ones. Without a name, the
            training uses the task's own config for the library, or the plugin's generic one if the task brings none for
            any library; ``"generic"`` chooses the generic one. A ``+`` before a path adds a value that the config lacks
            (``{"+normalize_input": True}``). Nothing can be added to the configs of RSL-RL, which are classes, but a value
            without a default may be a group: ``{"algorithm": {"rnd_cfg": {"weight": 0.1}}}``. A value that contradicts
            another argument, such as ``seed``, is refused, and so is one that rlnb sets itself; in the file of a whole run
            (``logs/params/agent.yaml``), such values do not count.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or ``"auto"``, which takes a GPU if the machine has one.
        nproc_per_node: Worker processes (ranks) on each machine, which share the envs. None is one rank, or on a cluster one rank
            for each requested GPU. ``"auto"`` is one rank for each GPU, or fewer if they could not share the envs equally.
            On this machine without a GPU, ``"auto"`` is the number that trains the task fastest, which is measured once
            (about a minute per candidate).
        init_from: Weights to start from: a run or its id, for the run's last checkpoint, or the path of a checkpoint.
            Optimiser and counters start anew; use ``run.resume()`` to continue with them.
        inputs: Runs or files that the library needs besides the task, by the library's names for them, such as
            ``{"teacher": run}`` for a distillation (:attr:`rlnb.plugin.Library.inputs`). A run, or its id, stands for its
            last checkpoint. A policy may be of any library. The new run copies each file, so that the other run can be
            deleted, and ``run.manifest.inputs`` records where it comes from.
        trust: Whether the checkpoints of ``init_from`` and ``inputs`` may hold more than weights, and whether to take a
            policy from a run of another user, whose task is then imported.
        keep: Number of newest checkpoints to keep, in addition to the best by reward; None keeps all.
        film_every: Learning iterations between two films of the training (``run.films``); None makes none. A film shows four
            envs for four seconds. Films take about 2 % of the training's time; one that would take more has fewer frames,
            or is left out.
        alerts: Rules of alerts: ``"diagnosis"`` for any symptom that :meth:`rlnb.Run.diagnose` knows, the name of one,
            ``"failed"``, ``"ended"``, a condition on metrics such as ``"iteration > 100 and reward < 5"``, or a function
            that takes the run and returns the text of an alert, or None. True stands for ``["diagnosis", "failed"]``. Each
            rule alerts once for each job. The node of the training looks for alerts (``run.alerts``), so only functions
            need this notebook, which calls them. An alert is shown in the notebook and as a notification in JupyterLab,
            and is sent to the webhook in the environment variable ``RLNB_ALERT_WEBHOOK``. The last steps are then recorded
            (``run.flight``).
        launcher: Launcher that starts the training; None is this machine.
        python: Command of the worker's interpreter; None takes ``rlnb.options.python``.
        asset_root: Folder or URL of robot assets; None takes ``rlnb.options.asset_root``. A script gets it as
            ISAACSIM_ASSET_ROOT.
        tags: Tags by which the run can be found.
        warm: Whether the warm simulator may become the run's process; None takes ``rlnb.options.warm``. With a launcher
            of a cluster, None takes no simulator, and True lets the simulator that holds a node of the same launcher train
            there, at most until the end of its job.
        like: Run to repeat, or its id or folder. Every argument that the call leaves out comes from it: the task with the
            copy of its module in the run's folder, library, resolved agent config, seed, length, ranks, device, weights to
            start from, inputs, alerts and launcher, but neither its name nor its tags nor ``warm`` nor ``trust``. Values in
            ``agent`` are added to those of the run; the name of an agent config, or another library, replaces them. None
            counts as left out, unless it is a value by the descriptions above, as in ``init_from=None``. On a CPU, and on a
            GPU with ``deterministic=True``, the curve is the same bit by bit, as long as versions and machine are. What
            differs is said in a warning, and in the table and the report of the new run. A run of another user needs
            ``trust=True``.

    Returns:
        The run, which is queued or starting; with a list of seeds, the runs.

    Raises:
        CheckError: The run would fail. It lists all problems; nothing was written.
    """
    ...

def check(task: Task | str | None = None, *, deep: bool = False, **arguments: Any) -> list[Problem]: ...
