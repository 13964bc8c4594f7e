"""Real Isaac Lab, on a CPU, with robots that were built on this machine. Most tests share one warm simulator."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

import rlnb
from rlnb.metrics.events import EventReader
from rlnb.records.repetition import differences
from rlnb.reports import sections
from rlnb.results import Evaluation
from rlnb.storage.files import source_hash
from rlnb.tasks import source

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

NUM_ENVS = 16
ITERATIONS = 4
STATE_TASK = "Isaac-Cartpole-Direct"
CAMERA_TASK = "Isaac-Cartpole-Camera-Direct"

DIRECT_TASK = """
import math
import numpy as np
import torch
import warp as wp
import isaaclab.sim as sim_utils
from isaaclab.envs import DirectRLEnv
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class UprightCfg(CartpoleEnvCfg):
    episode_length_s = 1.0
    initial_pole_angle_range = (-0.1, 0.1)

@torch.jit.script
def upright(angle: torch.Tensor) -> torch.Tensor:
    return torch.cos(angle)

@wp.kernel
def double(values: wp.array(dtype=wp.float32)):
    i = wp.tid()
    values[i] = 2.0 * values[i]

class UprightEnv(CartpoleEnv):
    def _get_rewards(self):
        reward = upright(self.joint_pos[:, self._pole_dof_idx[0]]).contiguous()
        wp.launch(double, dim=reward.shape[0], inputs=[wp.from_torch(reward)], device=str(self.device))
        log = self.extras.setdefault("log", {})
        log |= {"Own/step": np.int32(self.common_step_counter), "Own/sides": [0.0, 1.0], "Own/surface": "ice"}
        return reward

def success(env):
    return env.joint_pos[:, env._pole_dof_idx[0]].abs() < 10 * math.pi  # always, unlike the env's own rate
"""

MANAGER_TASK = """
from isaaclab.managers import RewardTermCfg
from isaaclab.utils import configclass
from isaaclab.utils.noise import GaussianNoiseCfg
import isaaclab.envs.mdp as mdp
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

@configclass
class GentleCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.rewards.effort = RewardTermCfg(func=mdp.action_l2, weight=-0.01)
        self.observations.policy.enable_corruption = True
        self.observations.policy.joint_pos_rel.noise = GaussianNoiseCfg(std=100.0)
        self.events.reset_pole_position.params["position_range"] = (-0.01, 0.01)

    def play_mode(self):
        super().play_mode()
        self.episode_length_s = 0.5
"""


DESCRIBED_TASK = """
from isaaclab.managers import ObservationGroupCfg, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils import configclass
import isaaclab.envs.mdp as mdp
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

def applied(env):
    return env.action_manager.get_term("joint_effort").processed_actions

@configclass
class StateCfg(ObservationGroupCfg):
    joint_pos = ObservationTermCfg(func=mdp.joint_pos)
    joint_vel = ObservationTermCfg(func=mdp.joint_vel)
    applied = ObservationTermCfg(func=applied)

@configclass
class DescribedCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.episode_length_s = 0.5
        self.scene.robot.init_state.joint_pos = {"slider_to_cart": 0.1, "cart_to_pole": 0.2}
        policy, action = self.observations.policy, self.actions.joint_effort
        robot = SceneEntityCfg("robot", joint_names=["cart_to_pole", "slider_to_cart"], preserve_order=True)
        policy.joint_pos_rel.params = {"asset_cfg": robot}
        policy.joint_pos_rel.scale, policy.joint_pos_rel.history_length = (2.0, 3.0), 3
        policy.joint_vel_rel.scale, policy.joint_vel_rel.clip = 0.5, (-0.3, 0.3)
        policy.last_action = ObservationTermCfg(func=mdp.last_action)
        action.scale, action.offset, action.clip = {"slider_to_cart": 2.0}, 0.5, {"slider_to_cart": (-0.6, 2.0)}
        self.observations.state = StateCfg()
"""

OUTSIDE = """
import json, sys
import numpy as np, onnxruntime
assert "isaaclab" not in sys.modules and "rlnb" not in sys.modules
session = onnxruntime.InferenceSession(sys.argv[1])
about = session.get_modelmeta().custom_metadata_map
rows = np.load(sys.argv[2])
joints, count = about["joint_names"].split(","), len(rows["actions"])
state = {"joint_pos_rel": rows["obs.state"][:, :2], "joint_vel_rel": rows["obs.state"][:, 2:4]}
obs = np.zeros((count, json.loads(about["inputs"])["obs"][1]), np.float32)
for term in json.loads(about["observations"]):
    if term["function"].endswith(":last_action"):
        values = np.concatenate([np.zeros((1, 1), np.float32), rows["actions"][:-1]])
    else:
        values = state[term["name"]][:, [joints.index(name) for name in term["joint_names"]]] - term["offset"]
    if term["clip"] is not None:
        values = values.clip(*term["clip"])
    values = values * (1.0 if term["scale"] is None else term["scale"])
    for age, (start, stop) in enumerate(reversed(term["columns"])):
        obs[:, start:stop] = values[np.maximum(np.arange(count) - age, 0)]
(actions,) = session.run(["actions"], {"obs": obs})
(joint,) = json.loads(about["actions"])
applied = (actions * joint["scale"] + joint["offset"]).clip(*joint["clip"][0])
print(json.dumps([
    float(abs(obs - rows["obs.policy"]).max()),
    float(abs(actions - rows["actions"]).max()),
    float(abs(applied[:-1] - rows["obs.state"][1:, 4:]).max()),
    [float(applied.min()), float(applied.max())],
    about,
]))
"""
"""A stranger's program, which knows the file and the state of the robot alone."""


@pytest.fixture(scope="module")
def trained(folder: Path) -> rlnb.Run:
    """A state task trained for a few iterations in a fresh process."""
    run = rlnb.train(STATE_TASK, num_envs=NUM_ENVS, max_iterations=ITERATIONS, device="cpu", warm=False)
    return run.wait(timeout_s=300)


def scalars(run: rlnb.Run) -> dict[str, list[float]]:
    reader = EventReader(run.path / "logs", without="system")
    reader.refresh()
    return {
        tag: [value for _, _, value in points]
        for tag, points in reader.scalars.items()
        if not tag.startswith("Perf/") and not tag.endswith("/time")
    }


def test_a_state_task_trains_and_records_what_ran(trained: rlnb.Run) -> None:
    started = trained.started
    assert started is not None
    assert trained.state == "completed"
    assert trained.progress == (ITERATIONS, ITERATIONS)
    assert (started.num_envs, started.devices) == (NUM_ENVS, ("cpu",))
    assert started.versions["isaaclab"].startswith("3.0")
    assert any(name.endswith("cartpole.usd") and len(digest) == 64 for name, digest in started.assets.items())
    assert trained.metrics["fps"].last > 0
    assert trained.metrics["reward"].frames[-1] == ITERATIONS * started.horizon * NUM_ENVS


def test_the_config_of_a_run_trains_again_with_a_group_that_had_no_default(folder: Path, trained: rlnb.Run) -> None:
    rnd = {"algorithm": {"rnd_cfg": {"weight": 0.1}}, "obs_groups": {"rnd_state": ["policy"]}}
    agent = [trained.path / "logs" / "params" / "agent.yaml", rnd]
    run = rlnb.train(STATE_TASK, num_envs=NUM_ENVS, max_iterations=1, seed=5, device="cpu", agent=agent).wait()
    written = (run.path / "logs" / "params" / "agent.yaml").read_text()
    assert re.search(r"rnd_cfg:\n +weight: 0.1", written)
    assert "seed: 5" in written


def test_an_adopted_warm_simulator_gives_the_same_numbers_as_a_fresh_process(folder: Path, trained: rlnb.Run) -> None:
    rlnb.preview(STATE_TASK, num_envs=2, steps=2)  # the warm simulator has handled another request before
    living = rlnb.simulator()
    for pid in [living.pid] * 2:
        run = rlnb.train(STATE_TASK, num_envs=NUM_ENVS, max_iterations=ITERATIONS, device="cpu", warm=True)
        run.wait(timeout_s=300)
        assert scalars(run) == scalars(trained)
        assert scalars(run)
        assert living.wait().pid == pid, "the training gives the simulator back"
        opened = [Path(file.path) for file in psutil.Process(pid).open_files()]
        assert not [path for path in opened if path.is_relative_to(run.path)], "no file of the run is still open"


def test_a_checkpoint_is_evaluated_from_reset_in_whole_episodes(folder: Path, trained: rlnb.Run) -> None:
    evaluation = trained.evaluate(episodes=20, num_envs=8)
    assert evaluation.episodes == 24  # the same number in each env
    assert evaluation.successes is not None
    assert evaluation.success_source == "Metrics/success_rate", "the env logs which envs timed out"
    assert evaluation.successes == evaluation.timeouts
    assert trained.evaluations[-1] == evaluation


def test_an_export_gives_the_actions_of_the_policy(folder: Path, trained: rlnb.Run) -> None:
    import onnxruntime
    import torch

    written = trained.export()
    observations = np.random.default_rng(0).normal(size=(1000, 4)).astype(np.float32)
    state = torch.load(trained.checkpoints[-1], weights_only=True)["actor_state_dict"]
    expected = _actor(state, torch.from_numpy(observations)).numpy()
    session = onnxruntime.InferenceSession(written["onnx"])
    name = session.get_inputs()[0].name
    (exported,) = session.run(None, {name: observations})
    scripted = torch.jit.load(written["torchscript"])(torch.from_numpy(observations)).detach().numpy()
    np.testing.assert_allclose(exported, expected, atol=1e-5)
    about = session.get_modelmeta().custom_metadata_map
    assert (about["observation_order"], json.loads(about["inputs"])) == ("not known", {name: ["n", 4]})
    assert "observations" not in about
    np.testing.assert_allclose(scripted, expected, atol=1e-5)


def _actor(state: dict, observations: object) -> object:  # type: ignore[type-arg]
    """Compute the mean action from the checkpoint's own weights, without RSL-RL."""
    import torch

    layers = sorted({key.rsplit(".", 1)[0] for key in state if key.endswith(".weight")})
    value = observations
    for index, layer in enumerate(layers):
        value = torch.nn.functional.linear(value, state[f"{layer}.weight"], state[f"{layer}.bias"])  # type: ignore[arg-type]
        if index < len(layers) - 1:
            value = torch.nn.functional.elu(value)
    return value


def test_a_policy_is_filmed(folder: Path, trained: rlnb.Run) -> None:
    import av

    film = trained.play(num_envs=4)
    assert film.path.is_relative_to(trained.path / "media")
    assert "data:video/mp4;base64," in film._repr_html_()
    with av.open(str(film.path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        assert container.streams.video[0].average_rate == 30
    assert len(frames) > 30
    assert frames[0].shape == (480, 640, 3), "2 by 2 envs of 320 by 240"
    moved = np.abs(frames[0].astype(int) - frames[20].astype(int)).max(axis=-1) > 50
    tiles = [moved[:240, :320], moved[:240, 320:], moved[240:, :320], moved[240:, 320:]]
    assert all(tile.any() for tile in tiles), "every pole fell"
    assert moved.mean() < 0.2, "the camera stood still"


def test_a_camera_that_does_not_exist_is_refused_before_a_film(folder: Path, trained: rlnb.Run) -> None:
    with pytest.raises(rlnb.RunError, match="No camera named 'wrist'"):
        trained.play(num_envs=1, camera="wrist")


def test_a_run_resumes_from_its_checkpoint(folder: Path, trained: rlnb.Run) -> None:
    run = rlnb.train(STATE_TASK, num_envs=NUM_ENVS, max_iterations=2, device="cpu").wait(timeout_s=300)
    run.resume(max_iterations=ITERATIONS).wait(timeout_s=300)
    assert run.started is not None
    assert run.started.first_iteration == 2
    assert [step for step, _, _ in run.metrics["fps"].points] == list(range(ITERATIONS))
    assert run.checkpoints[-1].name == f"model_{ITERATIONS - 1}.pt"


def test_a_checkpoint_with_code_in_it_is_refused(folder: Path, trained: rlnb.Run, tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> tuple:  # type: ignore[type-arg]
            return (Path.touch, (tmp_path / "executed",))

    bad = tmp_path / "model_1.pt"
    bad.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(rlnb.RunError, match="trust=True"):
        trained.evaluate(episodes=1, checkpoint=bad)
    assert not (tmp_path / "executed").exists()


def test_a_camera_task_trains(folder: Path) -> None:
    run = rlnb.train(CAMERA_TASK, num_envs=4, max_iterations=2, device="cpu").wait(timeout_s=400)
    assert run.progress == (2, 2)


def test_a_preview_shows_each_data_type_and_marks_missed_depth(folder: Path) -> None:
    shown = rlnb.preview(CAMERA_TASK, data_types=["rgb", "depth", "semantic_segmentation"], num_envs=3, steps=5)
    frames = shown.frames["tiled_camera"]
    assert frames["rgb"].shape == (3, 96, 96, 3)
    assert frames["rgb"].dtype == np.uint8
    assert frames["rgb"].std() > 1
    depth = frames["depth"]
    assert np.isinf(depth).any()
    assert 3.0 < depth[np.isfinite(depth)].mean() < 7.0  # the camera stands 5 m away
    assert "cartpole" in shown.labels["tiled_camera/semantic_segmentation"].values()
    assert not (frames["rgb"][0] == frames["rgb"][1]).all()
    assert shown.image.width > 3 * 96


def test_a_preview_adds_a_camera_to_a_task_without_one(folder: Path) -> None:
    shown = rlnb.preview(STATE_TASK, num_envs=2, steps=3, data_types=["rgb", "semantic_segmentation"])
    assert shown.added
    ids = shown.frames["preview"]["semantic_segmentation"]
    names = shown.labels["preview/semantic_segmentation"]
    seen = {names.get(int(number)) for number in np.unique(ids)}
    assert "cartpole" in seen


def test_a_cell_with_a_direct_env_jit_and_warp_trains_and_defines_its_own_success(folder: Path) -> None:
    source.write_module(rlnb.options.folders, "Upright", DIRECT_TASK, "test.ipynb")
    long = {"num_steps_per_env": 80}  # an episode has 60 steps
    run = rlnb.train("Upright", num_envs=NUM_ENVS, max_iterations=2, device="cpu", agent=long).wait(timeout_s=300)
    assert run.manifest.task.source_sha256 == source_hash((run.path / "source" / "upright.py").read_bytes())
    assert run.metrics["Own/step"].values == [pytest.approx(40.5), pytest.approx(120.5)], "means of an iteration"
    assert run.metrics["Own/sides"].values == [0.5, 0.5]
    assert run.logs(10_000).count('extras["log"]["Own/surface"] is ') == 1
    rates = run.metrics["success_rate"]
    assert (rates.iterations, rates.values) == ([0, 1], [1, 1]), "by the cell's function"
    evaluation = run.evaluate(episodes=NUM_ENVS)
    assert evaluation.successes is not None
    assert evaluation.success_source == rlnb.task("Upright").card().success == "Upright:success"
    assert evaluation.mean_return > 0  # twice the cosine of a small angle
    source.write_module(rlnb.options.folders, "Upright", DIRECT_TASK.replace("torch.cos", "torch.sin"), "test.ipynb")
    again = _of_the_report(run).wait(timeout_s=300)
    assert (again.manifest.like, again.manifest.task.source_sha256) == (run.id, run.manifest.task.source_sha256)
    assert scalars(again) == scalars(run), "the version of the run is trained, not today's"
    assert differences(again.record) == ()
    assert {"rsl-rl-lib", "torch", "newton"} <= again.started.versions.keys()


def _of_the_report(run: rlnb.Run) -> rlnb.Run:
    """Return the run that the cell "How to reproduce" of a report starts."""
    (text,) = re.findall(r"<pre>(.*?)</pre>", sections.reproduce([run]), re.DOTALL)
    names: dict[str, rlnb.Run] = {}
    exec(html.unescape(text), names)
    return names["run"]


def test_an_edited_cell_is_used_next(folder: Path) -> None:
    source.write_module(rlnb.options.folders, "Edited", DIRECT_TASK, "test.ipynb")
    task = rlnb.task("Edited")
    assert task.card().fields["episode_length_s"].value == 1.0
    changed = DIRECT_TASK.replace("episode_length_s = 1.0", "episode_length_s = 2.0")
    source.write_module(rlnb.options.folders, "Edited", changed, "test.ipynb")
    assert rlnb.task("Edited").card().fields["episode_length_s"].value == 2.0
    assert task.card().fields["episode_length_s"].value == 2.0
    source.module_path(rlnb.options.folders, "Edited").write_text(
        "# rlnb task 'Edited' of 'theirs.ipynb'\nTASK = None\n"
    )
    assert rlnb.task("Edited").card().fields["episode_length_s"].value == 2.0, "this kernel's own version"


def test_the_numbers_of_an_export_are_understood_from_its_metadata_alone(folder: Path, tmp_path: Path) -> None:
    source.write_module(rlnb.options.folders, "Described", DESCRIBED_TASK, "test.ipynb")
    run = rlnb.train("Described", num_envs=4, max_iterations=1, device="cpu").wait(timeout_s=300)
    exports = run.export()
    rollout = run.evaluate(episodes=1, record=16).rollout
    argv = [sys.executable, "-I", "-c", OUTSIDE, str(exports["onnx"]), str(rollout)]
    *differences, applied, about = json.loads(subprocess.check_output(argv, cwd=tmp_path, text=True))
    assert differences == [pytest.approx(0.0, abs=1e-5)] * 3, "observations, actions, and the effort of the joint"
    assert -0.6 <= round(applied[0], 6) < applied[1], "the efforts differ, so scale and offset have an effect"
    assert about["observation_names"] == "joint_pos_rel,joint_vel_rel,last_action"
    assert about["default_joint_pos"] == "0.1,0.2"
    assert (about["run_path"], about["task"], about["library"]) == (run.id, "Described", "rsl_rl")
    assert (about["engine"], about["decimation"], about["control_rate"]) == ("newton", "2", "60.0")
    assert about["source_sha256"] == run.manifest.task.source_sha256
    assert _of_torchscript(exports["torchscript"]).items() <= about.items()


def _of_torchscript(path: Path) -> dict[str, str]:
    import torch

    extra = {"metadata.json": ""}
    torch.jit.load(str(path), _extra_files=extra)
    return dict(json.loads(extra["metadata.json"]))


def test_a_cell_with_a_manager_based_task_trains(folder: Path) -> None:
    source.write_module(rlnb.options.folders, "Gentle", MANAGER_TASK, "test.ipynb")
    run = rlnb.train("Gentle", num_envs=NUM_ENVS, max_iterations=2, device="cpu").wait(timeout_s=300)
    assert "Episode_Reward/effort" in run.metrics.tags
    evaluation = run.evaluate(episodes=8, num_envs=4, mode="train")
    assert "effort" in evaluation.terms
    assert evaluation.success_source == "Metrics/success_rate", "the reward term success_rate logs it"
    assert evaluation.successes == evaluation.timeouts
    sums = [sum(values) for values in zip(*evaluation.terms.values(), strict=True)]
    assert sums == pytest.approx(evaluation.returns, rel=1e-3, abs=1e-4), "the terms add up to the return"
    assert any(name == "return: effort" for name, _, _ in evaluation.rows())

    played = run.evaluate(episodes=64, num_envs=64, record=64)
    noisy = run.evaluate(episodes=4, num_envs=4, record=64, mode="train")
    assert (played.mode, noisy.mode, played.num_envs) == ("play", "train", 64), "play_mode() alone would make 50 envs"
    assert max(played.lengths) <= 30 < max(noisy.lengths), "0.5 s have 30 steps"
    assert [one.mode for one in run.evaluations] == ["train", "play", "train"]
    assert [float(np.abs(observations(one)).max()) < 10.0 for one in (played, noisy)] == [True, False]


def observations(evaluation: Evaluation) -> np.ndarray:
    assert evaluation.rollout is not None
    with np.load(evaluation.rollout) as arrays:
        return np.asarray(arrays["obs.policy"])


def test_a_task_by_module_and_class_trains(folder: Path) -> None:
    name = "isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg:CartpoleEnvCfg"
    run = rlnb.train(name, num_envs=4, max_iterations=1, device="cpu").wait(timeout_s=300)
    assert run.state == "completed"


def test_a_name_of_isaaclab_2_is_understood(folder: Path) -> None:
    assert rlnb.task("Isaac-Cartpole-Direct-v0").card().gym_id == STATE_TASK
    assert (
        rlnb.task("Isaac-Repose-Cube-Shadow-Vision-Direct-v0").card().gym_id
        == "Isaac-Reorient-Cube-Shadow-Camera-Direct"
    )


def test_all_problems_are_reported_at_once_and_nothing_starts(folder: Path) -> None:
    before = {path.name for path in folder.glob("runs/*")}
    wrong = {"sim.dtt": 0.1, "sim.dt": "abc", "decimation": 2.5}
    task = rlnb.task(STATE_TASK, overrides=wrong, physics="newton_mjwrap")
    with pytest.raises(rlnb.CheckError) as error:
        rlnb.train(task, agent={"algorithm.lr": 1e-3, "num_steps_per_env": 1}, num_envs=2, max_iterations=-1)
    text = str(error.value)
    for expected in (
        "'sim.dtt'. Did you mean 'sim.dt'",
        "sim.dt takes float",
        "decimation takes int",
        "Did you mean 'newton_mjwarp'",
        "'algorithm.lr'",
        "fix: Use algorithm.num_mini_batches=2, or more envs.",
        "max_iterations=-1",
    ):
        assert expected in text
    assert {path.name for path in folder.glob("runs/*")} == before


def test_an_unknown_task_is_named_with_the_closest(folder: Path) -> None:
    with pytest.raises(rlnb.CheckError, match="Did you mean 'Isaac-Cartpole-Direct'"):
        rlnb.train("Isaac-Cartpol-Direct")


def test_missing_assets_of_a_task_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(rlnb.CheckError, match=r"cartpole\.usd is missing"):
        rlnb.train(STATE_TASK, asset_root=str(tmp_path))


@pytest.mark.parametrize(
    ("library", "seed", "iterations", "device"),
    [
        ("rsl_rl", "seed", "max_iterations", "device"),
        ("rl_games", "params.seed", "params.config.max_epochs", "params.config.device"),
        ("skrl", "seed", "trainer.timesteps", None),
        ("sb3", "seed", "n_timesteps", "device"),
    ],
)
def test_an_agent_value_that_an_argument_would_override_is_refused(
    folder: Path, library: str, seed: str, iterations: str, device: str | None
) -> None:
    (problem,) = rlnb.check(STATE_TASK, library=library, agent={seed: 5})
    assert f"{seed} is 5, but rlnb.train has seed=42" in problem.what
    assert rlnb.check(STATE_TASK, library=library, agent={seed: 5}, seed=5) == []
    assert rlnb.check(STATE_TASK, library=library, agent={seed: 42}, seed=5) == [], (
        "the config's own value is no request"
    )
    (problem,) = rlnb.check(STATE_TASK, library=library, agent={iterations: 7}, max_iterations=9)
    assert f"{iterations} is 7, but rlnb.train has max_iterations=9" in problem.what
    assert rlnb.check(STATE_TASK, library=library, agent={iterations: 7}) == [], "nothing overrides the value"
    if device:
        (problem,) = rlnb.check(STATE_TASK, library=library, agent={device: "cpu"})
        assert f"{device} is 'cpu', but rlnb.train has device='auto'" in problem.what
        assert rlnb.check(STATE_TASK, library=library, agent={device: "cpu"}, device="cpu") == []


def test_an_override_that_an_argument_would_override_is_refused(folder: Path) -> None:
    values = {"scene.num_envs": 8, "seed": 5, "sim.device": "cpu"}
    task = rlnb.task(STATE_TASK, overrides=values)
    problems = rlnb.check(task, num_envs=16)
    assert [problem.fix for problem in problems] == [
        f"Leave it out here, and pass {argument}= to rlnb.train." for argument in ("num_envs", "seed", "device")
    ]
    assert rlnb.check(task, num_envs=8, seed=5, device="cpu") == []
    assert rlnb.check(rlnb.task(STATE_TASK, overrides={"scene.num_envs": 8})) == []


@pytest.mark.parametrize(("library", "path"), [("rsl_rl", "seed"), ("rl_games", "params.seed")])
def test_a_typo_in_the_name_of_an_agent_value_is_refused(folder: Path, library: str, path: str) -> None:
    (problem,) = rlnb.check(STATE_TASK, library=library, agent={f"{path}x": 5})
    assert "Did you mean" in problem.what


def test_the_fix_for_a_task_without_a_simulator_names_its_library(folder: Path) -> None:
    (problem,) = rlnb.check("Echo")
    assert problem.fix == "Without a simulator: library='echo'."
    (problem,) = rlnb.check("Ecco")
    assert not problem.fix


def test_a_wrong_library_does_not_hide_problems_of_the_task(folder: Path) -> None:
    task = rlnb.task(STATE_TASK, overrides={"sim.dtt": 0.1})
    whats = [problem.what for problem in rlnb.check(task, library="rslrl")]
    assert "Did you mean 'rsl_rl'?" in whats[0]
    assert "no config value 'sim.dtt'" in whats[1]
    (what,) = [problem.what for problem in rlnb.check("Echo", library="ecco")]
    assert "No RL library named 'ecco'" in what


def test_values_can_be_added_to_a_yaml_config_but_not_to_a_class(folder: Path) -> None:
    assert rlnb.check(STATE_TASK, library="rl_games", agent={"+params.config.schedule_type": "standard"}) == []
    (problem,) = rlnb.check(STATE_TASK, library="rsl_rl", agent={"+algorithm.warmup": 3})
    assert "algorithm is a class" in problem.fix


def test_a_cell_that_fails_on_import_shows_its_traceback_and_the_simulator_lives_on(folder: Path) -> None:
    source.write_module(rlnb.options.folders, "Broken", "import isaaclab\n1 / 0\n", "test.ipynb")
    with pytest.raises(rlnb.CheckError, match="ZeroDivisionError"):
        rlnb.train("Broken")
    parsing = "import argparse\nargparse.ArgumentParser().parse_args()\n"
    source.write_module(rlnb.options.folders, "Parsing", parsing, "test.ipynb")
    with pytest.raises(rlnb.CheckError, match="argparse says: unrecognized arguments: "):
        rlnb.train("Parsing")
    assert rlnb.task(STATE_TASK).card().workflow == "direct"


def test_an_override_reaches_the_env(folder: Path) -> None:
    task = rlnb.task(STATE_TASK, num_envs=4, overrides={"episode_length_s": 0.5})
    run = rlnb.train(task, max_iterations=2, device="cpu").wait(timeout_s=300)
    evaluation = run.evaluate(episodes=4)
    assert max(evaluation.lengths) <= 30  # 0.5 s at 60 steps a second


def test_the_config_that_lacks_an_env_class_is_named(tmp_path: Path) -> None:
    from rlnb.worker.isaac import isaaclab

    path = tmp_path / "lacking.py"
    path.write_text(
        "from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg\n"
        "class UprightCfg(CartpoleEnvCfg):\n    pass\nclass UprightEnv:\n    pass\n"
    )
    with pytest.raises(
        rlnb.RlnbError, match=r"env class for UprightCfg, derived from DirectRLEnv .*, found none\. Set `ENV"
    ):
        isaaclab.register(rlnb.Task(id="lacking", source=str(path)))


def test_a_config_that_is_an_object_is_not_changed_by_the_runs_of_its_process(tmp_path: Path) -> None:
    from rlnb.worker.isaac import env, isaaclab

    path = tmp_path / "short.py"
    path.write_text(
        "from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv as ENV\n"
        "from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg\n"
        "TASK = CartpoleEnvCfg(episode_length_s=3.0)\n"
    )
    task = rlnb.Task(id="short", source=str(path))
    for _ in range(2):
        cfg = env.resolve_config(task, isaaclab.register(task))
        assert (cfg.episode_length_s, cfg.scene.env_spacing) == (3.0, 4.0)
        cfg.episode_length_s, cfg.scene.env_spacing = 1.0, 1.0
