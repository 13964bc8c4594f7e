"""Configs of a task, with overrides from the command line."""

import functools
import os
import sys


def hydra_task_config(task, agent):
    """Call a function with the configs of a task. Like Hydra, write a folder to the working directory."""

    def decorate(function):
        @functools.wraps(function)
        def main():
            cfg = {
                "env": {"scene": {"num_envs": 4096}, "actions": {"joint_ids": slice(None)}},
                "agent": {
                    "num_steps_per_env": 24,
                    "max_iterations": 1500,
                    "experiment_name": task.lower(),
                    "iteration_s": 0.0,
                },
            }
            for override in sys.argv[1:]:
                path, _, value = override.partition("=")
                *parents, leaf = path.split(".")
                node = functools.reduce(lambda node, name: node[name], parents, cfg)
                node[leaf] = type(node[leaf])(value)
            os.makedirs(os.path.join("outputs", ".hydra"), exist_ok=True)
            function(cfg["env"], cfg["agent"])

        return main

    return decorate
