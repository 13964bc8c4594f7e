"""Checks every registered task with every installed library: which agent config trains it, and is that stated?

    python benchmarks/agents.py

Takes about three minutes, nearly all of it for the task cards. The named agent configs are compared with what Isaac Lab
itself resolves in a process without rlnb.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

from results import record

import rlnb
from rlnb.hooks import plugins
from rlnb.protocol import requests
from rlnb.simulation.pool import pool
from rlnb.training.arguments import TrainArguments
from rlnb.training.plan import make_plan

STOCK = "import isaaclab_tasks"
STOCK_CONFIG = """
    from isaaclab_tasks.utils import resolve_task_config
    return resolve_task_config(task, name, overrides=[])[1]
"""
OURS = """
from rlnb.hooks import plugins
from rlnb.spec import Task
from rlnb.configs.agent import libraries_of
from rlnb.worker.isaac import agent_configs, isaaclab
isaaclab.start()
"""
OUR_CONFIG = """
    library = plugins.library(libraries_of(name, plugins.libraries())[0])
    return agent_configs.resolve(Task(id=task), isaaclab.register(Task(id=task)), library, name)
"""
SCRIPT = """
import json, sys
{start}
def config(task, name):{config}
from isaaclab.utils import to_dict
for task, name in json.loads(sys.argv[1]):
    value = config(task, name)
    print("CONFIG", json.dumps(value if isinstance(value, dict) else to_dict(value), default=repr))
"""


def main() -> None:
    libraries = [name for name, library in plugins.libraries().items() if library.simulator and not library.multi_agent]
    tasks = pool.request(requests.Tasks(), None, None).ids
    sources: Counter[str] = Counter()
    unstated, silent, accepted_amp = [], [], []
    names: list[tuple[str, str]] = []
    for task in tasks:
        card = rlnb.task(task).card()
        names += [(task, name) for name in card.named_agents]
        for library in libraries:
            plan = make_plan(TrainArguments(task=task, library=library, device="cpu"))
            refused = any("brings no agent config" in problem.what and problem.fix for problem in plan.problems)
            generic = plan.manifest.agent_source.startswith("the generic config")
            kind = "refused" if refused else "generic" if generic else "own"
            sources[kind] += 1
            if not plan.manifest.agent_source:
                unstated.append((task, library))
            if kind == "generic" and card.registered_agents:
                silent.append((task, library))
            if "AMP" in task and library == "rsl_rl" and kind != "refused":
                accepted_amp.append(task)
    value = f"{len(tasks)} tasks x {len(libraries)} libraries: {dict(sources)}; source not stated: {len(unstated)}"
    record("agent config of every task and library", value, "all stated", not unstated and not silent)
    amp = sum("AMP" in task for task in tasks)
    record("AMP tasks under rsl_rl", f"{amp - len(accepted_amp)} of {amp} refused", "all", amp and not accepted_amp)
    pairs = zip(names, configs(names, OURS, OUR_CONFIG), configs(names, STOCK, STOCK_CONFIG), strict=True)
    different = [name for name, ours, theirs in pairs if ours != theirs]
    value = f"{len(names) - len(different)} of {len(names)}"
    record("named agent configs equal to Isaac Lab's own", value, "all", bool(names) and not different)


def configs(names: list[tuple[str, str]], start: str, config: str) -> list[str]:
    """Return the named agent configs of tasks as JSON, resolved in a process of their own."""
    script = SCRIPT.format(start=start, config=config)
    argv = [sys.executable, "-c", script, json.dumps(names)]
    output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [line.removeprefix("CONFIG ") for line in output.splitlines() if line.startswith("CONFIG ")]


if __name__ == "__main__":
    main()
