"""A training script in the form that Isaac Lab 2.3 gives its own: the app starts first, then everything is imported."""

# ruff: noqa: E402
import argparse
import sys

import cli_args  # beside this script
from isaaclab.app import AppLauncher

parser = argparse.ArgumentParser(description="Train an agent with RSL-RL.")
parser.add_argument("--task", type=str, default=None)
parser.add_argument("--num_envs", type=int, default=None)
parser.add_argument("--max_iterations", type=int, default=None)
cli_args.add_rsl_rl_args(parser)
AppLauncher.add_app_launcher_args(parser)
args_cli, hydra_args = parser.parse_known_args()
sys.argv = [sys.argv[0], *hydra_args]
simulation_app = AppLauncher(args_cli).app

import os
from datetime import datetime

from isaaclab.utils.io import dump_yaml
from isaaclab_tasks.utils.hydra import hydra_task_config
from rsl_rl.runners import OnPolicyRunner


@hydra_task_config(args_cli.task, "rsl_rl_cfg_entry_point")
def main(env_cfg, agent_cfg):
    env_cfg["scene"]["num_envs"] = args_cli.num_envs or env_cfg["scene"]["num_envs"]
    agent_cfg["max_iterations"] = args_cli.max_iterations or agent_cfg["max_iterations"]
    name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S") + (f"_{args_cli.run_name}" if args_cli.run_name else "")
    log_dir = os.path.join(os.path.abspath(os.path.join("logs", "rsl_rl", agent_cfg["experiment_name"])), name)
    print(f"[INFO] Logging experiment in directory: {log_dir}")
    runner = OnPolicyRunner(agent_cfg, log_dir=log_dir)
    dump_yaml(os.path.join(log_dir, "params", "env.yaml"), env_cfg)
    dump_yaml(os.path.join(log_dir, "params", "agent.yaml"), agent_cfg)
    runner.learn(num_learning_iterations=agent_cfg["max_iterations"])


if __name__ == "__main__":
    main()
    simulation_app.close()
