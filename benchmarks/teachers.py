"""Checks that RSL-RL distils a teacher of each library: success of the student and of its teacher, and the lineage.

    python benchmarks/teachers.py
    python benchmarks/teachers.py --case sb3    # one library, without a row in RESULTS.md

Cartpole. The student observes what its teacher observes, and has a network of its own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.tasks import source

TASK, NUM_ENVS, EPISODES = "Isaac-Cartpole-Direct", 256, 512
ITERATIONS = {"rsl_rl": 150, "rl_games": 150, "skrl": 150, "sb3": 300}
"""Learning iterations of the teacher of each library."""
LEARNED, AT_LEAST = 0.9, 0.95
"""Least success rate of a teacher, and that of a student as a share of its teacher's."""
STUDENT = """
from isaaclab_rl.rsl_rl import RslRlDistillationAlgorithmCfg, RslRlDistillationRunnerCfg, RslRlMLPModelCfg
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv as ENV
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg as TASK

NETWORK = RslRlMLPModelCfg(
    hidden_dims=[64, 64],
    activation="elu",
    obs_normalization=True,
    distribution_cfg=RslRlMLPModelCfg.GaussianDistributionCfg(init_std=0.1),
)
AGENTS = {
    "rsl_rl": RslRlDistillationRunnerCfg(
        num_steps_per_env=32,
        max_iterations=100,
        save_interval=50,
        experiment_name="student",
        obs_groups={"student": ["policy"], "teacher": ["policy"]},
        student=NETWORK,
        teacher=NETWORK,
        algorithm=RslRlDistillationAlgorithmCfg(num_learning_epochs=2, learning_rate=1e-3, gradient_length=16),
    )
}
"""


def rate(run: rlnb.Run) -> float:
    """Return the success rate of a run's last checkpoint."""
    successes = run.evaluate(EPISODES, num_envs=NUM_ENVS).successes
    assert successes is not None, "cartpole has a success function"
    return sum(successes) / len(successes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=ITERATIONS)
    case = parser.parse_args().case
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    rlnb.options.root = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    source.write_module(rlnb.options.folders, "Student", STUDENT, "teachers.py")
    texts, holds = [], True
    for library in [case] if case else ITERATIONS:
        iterations = ITERATIONS[library]
        teacher = rlnb.train(TASK, library=library, num_envs=NUM_ENVS, max_iterations=iterations, device="cpu").wait()
        student = rlnb.train("Student", num_envs=NUM_ENVS, device="cpu", inputs={"teacher": teacher}).wait()
        rates = rate(teacher), rate(student)
        is_recorded = student.manifest.inputs["teacher"].startswith(f"{teacher.id}/")
        holds = holds and is_recorded and rates[0] >= LEARNED and rates[1] >= AT_LEAST * rates[0]
        texts.append(f"{library}: {rates[1]:.3f} of {rates[0]:.3f}{'' if is_recorded else ', lineage lost'}")
        print(texts[-1], flush=True)
    if case is None:
        bound = f"a teacher with success >= {LEARNED}, {AT_LEAST} of it in its student, and the teacher in its record"
        record("RSL-RL distils a teacher of each library", "; ".join(texts), bound, holds)


if __name__ == "__main__":
    main()
