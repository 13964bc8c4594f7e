"""A training that only writes what a real one writes: event files, checkpoints and a table on the terminal."""

import os
import time

from rsl_rl.events import EventFile


class OnPolicyRunner:
    """Logs the scalars of RSL-RL 3.1 under their own names."""

    def __init__(self, cfg, log_dir):
        self._cfg, self._log_dir = cfg, log_dir
        os.makedirs(log_dir)

    def learn(self, num_learning_iterations):
        events = EventFile(self._log_dir)
        for iteration in range(num_learning_iterations):
            time.sleep(self._cfg["iteration_s"])
            scalars = {
                "Loss/value_function": 1.0 / (iteration + 1),
                "Loss/surrogate": -0.01,
                "Loss/learning_rate": 0.001,
                "Policy/mean_noise_std": 1.0,
                "Perf/total_fps": 10_000.0,
                "Perf/collection time": 0.1,
                "Perf/learning_time": 0.05,
                "Train/mean_reward": iteration / 10,
                "Train/mean_episode_length": 100.0,
                "Train/mean_reward/time": iteration / 10,
            }
            events.add_scalars(iteration, scalars)
            print(f"Learning iteration {iteration}/{num_learning_iterations}", flush=True)
            if iteration % 50 == 0 or iteration == num_learning_iterations - 1:
                with open(os.path.join(self._log_dir, f"model_{iteration}.pt"), "wb") as file:
                    file.write(b"weights")
