"""Records that a rank writes about its run, and statistics that it shares with other ranks."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.hooks.registry import registry
from rlnb.launchers import Resources
from rlnb.plugin import Manifest, Role, hookimpl
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import TrainOptions
from rlnb.storage import files
from rlnb.tasks import source
from rlnb.worker.jobs.context import Context, gpu_model, open_job, plugin_differences


def context_of(tmp_path: Path, world_size: int) -> Context:
    job = JobDir(tmp_path / "jobs" / "0-train")
    job.path.mkdir(parents=True)
    resources = Resources(nodes=2 if world_size > 1 else 1, nproc_per_node=max(1, world_size // 2))
    task = rlnb.Task(id="Echo", num_envs=1)
    manifest = Manifest(run_id="r", created="", task=task, library="echo", resources=resources)
    return Context(RunDir(tmp_path), job, manifest, TrainOptions())


def started(tmp_path: Path, device: str, world_size: int) -> dict[str, object]:
    context = context_of(tmp_path, world_size)
    context.device = device
    context.started(horizon=1, frames_per_step=1.0, max_iterations=1)
    return files.read_json(tmp_path / "jobs" / "0-train" / "started.json") or {}


def test_a_number_of_envs_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    context = context_of(tmp_path, 1)
    context.num_envs = 0
    with pytest.raises(rlnb.RlnbError, match="does not get num_envs, and echo has no envs"):
        context.started(horizon=4, frames_per_step=512.0, max_iterations=1)
    context.started(horizon=4, frames_per_step=512.0, max_iterations=1, num_envs=128)


@pytest.mark.parametrize(("horizon", "frames"), [(0, 16.0), (16, 0.0)])
def test_an_empty_iteration_is_refused(tmp_path: Path, horizon: int, frames: float) -> None:
    with pytest.raises(rlnb.RlnbError, match="must be positive: check the rollout's length"):
        context_of(tmp_path, 1).started(horizon=horizon, frames_per_step=frames, max_iterations=1)


def test_a_kill_leaves_no_half_checkpoint_of_echo(tmp_path: Path) -> None:
    opened: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:  # an audit hook cannot be removed again
        if event == "open" and str(arguments[0]).startswith(str(tmp_path / "logs")):
            opened.append(Path(str(arguments[0])).name)

    sys.addaudithook(hook)
    plugins.load(plugins.library("echo").backend)().train(None, {}, context_of(tmp_path, 1))
    written = [path.name for path in sorted((tmp_path / "logs").glob("model_*.json"))]
    assert len(written) == 4
    assert not set(opened) & set(written), "each is written under another name, and renamed when complete"
    assert {f".part-{name}" for name in written} <= set(opened)


def test_the_ranks_of_a_node_use_its_gpus_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert started(tmp_path, "cuda:0", 8)["devices"] == [f"cuda:{number}" for number in (0, 1, 2, 3) * 2]


def test_the_communication_of_ranks_is_recorded_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name, value in {"NCCL_SOCKET_IFNAME": "ib0", "GLOO_SOCKET_IFNAME": "ib0", "SECRET_TOKEN": "x"}.items():
        monkeypatch.setenv(name, value)
    record = started(tmp_path, "cpu", 2)
    assert record["communication"] == {"GLOO_SOCKET_IFNAME": "ib0", "NCCL_SOCKET_IFNAME": "ib0"}
    assert record["devices"] == ["cpu", "cpu"]


def test_a_single_rank_has_no_communication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    record = started(tmp_path, "cuda:1", 1)
    assert (record["communication"], record["devices"]) == ({}, ["cuda:1"])


def test_the_number_of_threads_is_recorded_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(get_num_threads=lambda: 3))
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("RLNB_THREADS", "a quota of 3 cores")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    record = started(tmp_path, "cpu", 1)
    assert (record["threads"], record["threads_why"], record["cores"]) == (3, "a quota of 3 cores", 1)


RANK = """
import json, os, sys
from pathlib import Path
from types import SimpleNamespace
import torch
import torch.distributed as dist
from rlnb.worker.jobs.context import Context

dist.init_process_group("gloo")
rank = dist.get_rank()
data = [torch.randn(2000, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in range(2)]
offset, spread = float(sys.argv[1]), float(sys.argv[2])
data = [offset + spread * (part + n) for n, part in enumerate(data)]
mean, variance = data[rank].mean(0).float(), data[rank].var(0, unbiased=False).float()
ctx = SimpleNamespace(world_size=2, roles=(), group=None, synchronised=sys.argv[3] == "yes")
before = (mean.tolist(), variance.tolist())
Context.pool(ctx, mean, variance)
whole = torch.cat(data)
if rank == 0:
    print(json.dumps({
        "before": before,
        "after": (mean.tolist(), variance.tolist()),
        "whole": (whole.mean(0).tolist(), whole.var(0, unbiased=False).tolist()),
    }))
dist.destroy_process_group()
"""


def pooled(tmp_path: Path, *arguments: str) -> dict[str, list[list[float]]]:
    pytest.importorskip("torch")
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run([*torchrun, str(script), *arguments], capture_output=True, text=True, check=True, timeout=120)
    result: dict[str, list[list[float]]] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize(("offset", "spread"), [("0", "1"), ("9.81", "0.001")])
def test_pooled_statistics_become_those_of_all_data(tmp_path: Path, offset: str, spread: str) -> None:
    result = pooled(tmp_path, offset, spread, "yes")
    assert result["after"][0] == pytest.approx(result["whole"][0], rel=1e-6, abs=1e-6)
    # A mean in float32 is off by half a unit in its last place.
    assert result["after"][1] == pytest.approx(result["whole"][1], rel=2e-3)


def test_the_negative_control_leaves_statistics_alone(tmp_path: Path) -> None:
    result = pooled(tmp_path, "0", "1", "no")
    assert result["after"] == result["before"]


NVML = """
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlSystemGetDriverVersion(): return "580.95.05"
"""


def test_the_model_of_the_gpu_and_its_driver_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", {"cuda:1": "NVIDIA L40S"}.__getitem__)
    nvml = types.ModuleType("pynvml")
    exec(NVML, vars(nvml))
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert gpu_model("cuda:1") == "NVIDIA L40S, driver 580.95.05"
    assert gpu_model("cpu") == ""
    monkeypatch.setitem(sys.modules, "pynvml", None)  # type: ignore[arg-type]
    assert gpu_model("cuda:1") == "NVIDIA L40S", "without NVML"


def test_a_value_of_the_user_that_the_backend_has_changed_ends_the_training(tmp_path: Path) -> None:
    context = context_of(tmp_path, 1)
    context.agent_changes = lambda: {"minibatch_size": 512, "seed": 7}
    context.agent = {"+minibatch_size": 500}
    with pytest.raises(
        rlnb.RlnbError, match=r"minibatch_size=500 is not possible with echo.* with 512\. Use that value"
    ):
        context.started(horizon=1, frames_per_step=1.0, max_iterations=1)
    context.agent = {"minibatch_size": 512}
    context.started(horizon=1, frames_per_step=1.0, max_iterations=1)
    started = files.read_json(tmp_path / "jobs" / "0-train" / "started.json") or {}
    assert started["agent_changes"] == {"minibatch_size": 512, "seed": 7}


def test_a_value_that_belongs_to_an_argument_or_to_rlnb_does_not_end_the_training(tmp_path: Path) -> None:
    """A dumped config file has all of them, and a resumed training may be longer than its agent config says."""
    context = context_of(tmp_path, 1)
    context._library = plugins.library("rsl_rl")
    context.agent = {"max_iterations": 100, "seed": 42, "logger": "tensorboard"}
    context.agent_changes = lambda: {"max_iterations": 200, "seed": 7, "logger": "rlnb_rsl_rl.backend:EventWriter"}
    assert context._changes()["max_iterations"] == 200
    context._library = plugins.library("rl_games")
    context.agent, size = {"params.config.minibatch_size": 16_384}, "params.config.minibatch_size"
    context.agent_changes = lambda: {size: 512}
    assert context._changes() == {size: 512}, "the plugin has checked it"
    context.agent = {"algorithm.gamma": 0.9}
    context.agent_changes = lambda: {"algorithm.gamma": 0.99}
    with pytest.raises(rlnb.RlnbError, match=r"algorithm\.gamma=0\.9 is not possible"):
        context._changes()


def with_frames(tmp_path: Path, options: TrainOptions | None = None) -> Context:
    context = context_of(tmp_path, 1)
    manifest = dataclasses.replace(context._manifest, max_frames=1000)
    return Context(RunDir(tmp_path), context._job, manifest, options or TrainOptions())


def test_a_training_ends_with_the_iteration_that_reaches_its_frames(tmp_path: Path) -> None:
    context = with_frames(tmp_path)
    context.num_envs = 16
    context.count_frames(16)
    assert context.max_iterations == 4, "3 iterations have 768 frames"
    context.count_frames(1)
    assert context.max_iterations == 63, "an off-policy library, whose iteration is one env step"
    context.num_envs = 1000
    context.count_frames(1)
    assert context.max_iterations == 1
    context.started(horizon=1, frames_per_step=1000.0, max_iterations=1)


@pytest.mark.parametrize(("horizon", "num_envs"), [(None, 16), (0, 16), (16, 0)])
def test_frames_that_cannot_be_counted_are_refused(tmp_path: Path, horizon: int | None, num_envs: int) -> None:
    context = with_frames(tmp_path)
    context.num_envs = num_envs
    with pytest.raises(rlnb.RlnbError, match=r"max_frames=1000 cannot be counted in iterations\. Use max_iterations\."):
        context.count_frames(horizon)


def test_a_backend_that_ignores_the_frames_is_refused(tmp_path: Path) -> None:
    context = with_frames(tmp_path)
    context.num_envs = 16
    context.count_frames(16)
    with pytest.raises(
        rlnb.RlnbError, match=r"takes 4 iterations of 16 env steps in 16 envs, but echo would train for 9"
    ):
        context.started(horizon=16, frames_per_step=256.0, max_iterations=9)
    with pytest.raises(rlnb.RlnbError, match=r"takes 2 iterations of 32 env steps .* must name the env steps"):
        context.started(horizon=32, frames_per_step=512.0, max_iterations=4)


def test_a_resumed_training_keeps_the_iterations_that_were_counted_or_gets_new_ones(tmp_path: Path) -> None:
    context = with_frames(tmp_path, TrainOptions(max_iterations=9))
    context.count_frames(None)
    assert context.max_iterations == 9
    context.started(horizon=16, frames_per_step=256.0, max_iterations=9)


LEARNER, ACTOR = Role(name="learner", env=False), Role(name="actor")


def with_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int, *, simulator: bool = True) -> Context:
    library = dataclasses.replace(plugins.library("echo"), simulator=simulator)
    monkeypatch.setattr(plugins, "library", lambda name: library)
    monkeypatch.setattr(plugins, "roles_of", lambda *_: (LEARNER, ACTOR, ACTOR))
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", "3")
    return context_of(tmp_path, 3)


def test_a_rank_knows_its_role_and_the_ranks_that_step_envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [with_roles(tmp_path / str(rank), monkeypatch, rank) for rank in range(3)]
    assert [ctx.role for ctx in ranks] == ["learner", "actor", "actor"]
    assert [ctx.has_env for ctx in ranks] == [False, True, True]
    assert [ctx.is_first_with_env for ctx in ranks] == [False, True, False]
    assert {ctx.sharing for ctx in ranks} == {2}
    assert not any(with_roles(tmp_path / "n", monkeypatch, rank, simulator=False).has_env for rank in (1,))


def test_statistics_of_a_role_without_a_group_are_not_those_of_all_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    context = with_roles(tmp_path, monkeypatch, 1, simulator=False)
    with pytest.raises(rlnb.RlnbError, match=r"no process group of the role 'actor'\. Use torch\.distributed\."):
        context.pool(None, None)


def test_a_training_with_another_number_of_envs_than_its_share_has_to_say_so(tmp_path: Path) -> None:
    context = context_of(tmp_path, 1)
    context.planned_envs, context.num_envs_here, context.num_envs = 64, 8, 64
    with pytest.raises(rlnb.RlnbError, match=r"trains with 8 envs on rank 0, and not with 64, .* Pass num_envs to"):
        context.started(horizon=4, frames_per_step=32.0, max_iterations=1)
    context.started(horizon=4, frames_per_step=32.0, max_iterations=1, num_envs=8)


def test_the_roles_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = with_roles(tmp_path, monkeypatch, 0)
    context.num_envs, context.devices = 16, ("cuda:0", "cpu", "cpu")
    context.started(horizon=1, frames_per_step=16.0, max_iterations=1)
    record = files.read_json(tmp_path / "jobs" / "0-train" / "started.json") or {}
    assert record["roles"] == ["learner", "actor", "actor"]
    assert (record["num_envs"], record["devices"]) == (16, ["cuda:0", "cpu", "cpu"])


def test_without_roles_every_rank_steps_envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert started(tmp_path, "cpu", 1)["roles"] == []
    context = context_of(tmp_path / "n", 1)
    assert (context.role, context.group, context.has_env, context.sharing) == ("", None, False, 1), "echo has none"
    context._library = plugins.library("rsl_rl")
    context.world_size = 2
    assert (context.has_env, context.is_first_with_env, context.sharing) == (True, True, 2)


def test_without_a_simulator_there_is_no_env_to_make(tmp_path: Path) -> None:
    context = context_of(tmp_path, 1)
    for make in (context.make_env, context.env_factory):
        with pytest.raises(rlnb.RlnbError, match=r"echo trains without a simulator, so it has no env to make\."):
            make()


def test_inputs_are_the_copies_in_the_folder_of_the_run(tmp_path: Path) -> None:
    origins = {"teacher": "a-run/logs/model_7.pt", "demos": "/data/demos.npz"}
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", inputs=origins)
    context = Context(RunDir(tmp_path), JobDir(tmp_path / "jobs" / "0-train"), manifest, TrainOptions())
    folder = tmp_path / "inputs"
    assert context.inputs == {"teacher": folder / "teacher" / "model_7.pt", "demos": folder / "demos" / "demos.npz"}


# -- env plugins -----------------------------------------------------------------------------------------------------


WAIT_S = 60.0


@pytest.fixture
def job(root: Path) -> Path:
    """Folder of the training of an echo run, which has ended."""
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    return run.jobs[0].folder.path


@pytest.fixture
def here() -> Iterator[None]:
    """A plugin of this process that changes the env config, in version 2.0."""
    hook = staticmethod(hookimpl(lambda env_cfg: None))
    rlnb.register(type("Plugin", (), {"rlnb_configure_env": hook}), "here")
    registry().plugins["here"].version = "2.0"
    yield
    registry().manager.unregister(name="here")


def record(job: Path, plugins: Any) -> None:
    """Write the plugins of the training into its record, as another process would have."""
    path = job / "started.json"
    values = json.loads(path.read_text())
    path.unlink()
    path.write_text(json.dumps({**values, "plugins": plugins}))


def test_a_plugin_is_named_if_it_is_missing_new_or_of_another_version(job: Path, here: None) -> None:
    expected: list[tuple[Any, list[str]]] = [
        ({"here": "2.0"}, []),
        (None, []),
        (
            {"gone": "1.0", "here": "2.0"},
            [
                "The plugin 'gone' 1.0 could change the env of the training. It is not installed here, or does not "
                "work, so the env may differ."
            ],
        ),
        (
            {"gone": "", "here": ""},
            [
                "The plugin 'gone' could change the env of the training. It is not installed here, or does not work, "
                "so the env may differ.",
                "The plugin 'here', which may change the env, had version unknown in the training, and 2.0 here.",
            ],
        ),
        ({}, ["The plugin 'here' 2.0 may change the env here, and was not part of the training."]),
        (
            {"here": "1.0"},
            ["The plugin 'here', which may change the env, had version 1.0 in the training, and 2.0 here."],
        ),
    ]
    for names, texts in expected:
        record(job, names)
        assert list(plugin_differences(open_job(job))) == texts


def test_a_training_without_a_simulator_records_no_plugin(job: Path) -> None:
    assert json.loads((job / "started.json").read_text())["plugins"] == {}
    assert plugin_differences(open_job(job)) == ()


def test_a_training_that_has_not_started_has_no_differences(job: Path, here: None) -> None:
    (job / "started.json").unlink()
    assert plugin_differences(open_job(job)) == ()


def test_a_copy_of_the_source_that_was_edited_is_a_difference(root: Path) -> None:
    source.write_module(rlnb.options.folders, "Echo", "x = 1\n", "mine.ipynb")
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait(WAIT_S)
    opened = open_job(run.jobs[0].folder.path)
    assert plugin_differences(opened) == ()
    assert opened.module is not None
    opened.module.write_text("x = 2\n")
    (text,) = plugin_differences(opened)
    assert text.startswith(f"{opened.module} was edited after the training: its sha256 is ")
