"""Trains, evaluates and exports the projects that ``isaaclab --new`` writes, as they are, with each of their libraries.

    python benchmarks/new_projects.py

The six kinds are the cart-pole and the stub of each workflow. A stub has no reward yet, so what counts is that its
error names a file of the project and a line. The generator of Isaac Lab 3.0.0 copies files with a dot in front of their
names, which its wheel lacks. Here it runs on a copy that has empty ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from results import record

import rlnb
from rlnb.hooks import plugins
from rlnb.protocol import requests
from rlnb.simulation.pool import pool

WORKFLOWS = ("manager-based:single-agent", "direct:single-agent", "direct:multi-agent")
LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")
DOT_FILES = (".gitattributes", ".gitignore", ".pre-commit-config.yaml", ".vscode/tasks.json")
LAUNCH = ".vscode/tools/launch.template.json"


def generator(folder: Path) -> Path:
    """Copy Isaac Lab's generator with the files that its wheel lacks; return its program."""
    spec = find_spec("isaaclab")
    assert spec is not None
    assert spec.origin is not None
    copy = folder / "lab" / "tools" / "template"  # projects may not be in the lab
    shutil.copytree(Path(spec.origin).parent / "tools" / "template", copy)
    for name in (*DOT_FILES, LAUNCH):
        path = copy / "templates" / "external" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return copy / "cli.py"


def new_project(program: Path, folder: Path, name: str, workflow: str, content: str) -> None:
    """Generate a project, as the command line of Isaac Lab does."""
    algorithms = ("ippo", "mappo") if workflow.endswith("multi-agent") else ("ppo",)
    libraries = ("skrl",) if workflow.endswith("multi-agent") else LIBRARIES
    options = {"task_type": "external", "project_path": str(folder), "name": name, "author": "rlnb"}
    options |= {"initial_content": content, "workflow": workflow}
    argv = [part for key, value in options.items() for part in (f"--{key}", value)]
    argv += [part for library in libraries for part in ("--rl_library", library)]
    argv += [part for algorithm in algorithms for part in ("--rl_algorithm", algorithm)]
    command = [sys.executable, str(program), "--non_interactive", *argv]
    subprocess.run(command, check=True, cwd=program.parent, stdout=subprocess.DEVNULL)


def task_ids(name: str) -> list[str]:
    """Return the tasks of a project, found as a user names them."""
    prefix = name.capitalize()
    listing = pool.request(requests.Tasks(imports=(f"{name}.tasks",)), None, None)
    return [id for id in listing.ids if id.startswith(prefix)]


def tried(id: str, imports: str) -> Iterator[tuple[str, str]]:
    """Yield each library of a task, and at the first fault what went wrong; an empty string if nothing did."""
    task = rlnb.task(id, imports=imports)
    card = task.card()
    own = [name for name, agent in card.agents.items() if not agent.generic]
    for name in ["", *(name for name in own if card.agents[name].trained_by(plugins.library(name)) == name)]:
        library = {"library": name} if name else {}
        try:
            run = rlnb.train(task, num_envs=32, max_iterations=3, device="cpu", **library)
            run.wait(300)
            run.evaluate(episodes=2, num_envs=2)
            files = run.export()
            yield name or f"default ({card.default_library})", "" if files else "no file"
        except rlnb.RlnbError as exc:
            yield name or f"default ({card.default_library})", str(exc).partition("\n")[0]


def stub_error(id: str, imports: str, project: Path) -> str:
    """Return what is wrong with the error of a stub; empty if it names a file of the project and a line."""
    task = rlnb.task(id, imports=imports)
    try:
        rlnb.preview(task, num_envs=2, steps=2)
    except rlnb.RlnbError as exc:
        found = re.search(r"[\w.]+\.py, line \d+", str(exc))
        return "" if found and str(project / "src") in f"{exc}{getattr(exc, 'detail', '')}" else str(exc)
    return "it has no error"


def main() -> None:
    wrong: list[str] = []
    done = stubs = 0
    with tempfile.TemporaryDirectory(prefix="rlnb-new-") as folder:
        rlnb.options.root = Path(folder) / "runs"
        program, projects = generator(Path(folder)), {}
        for content in ("cartpole", "stubbed"):
            for number, workflow in enumerate(WORKFLOWS):
                name = f"{content}{number}"
                projects[name] = Path(folder) / name
                new_project(program, Path(folder), name, workflow, content)
        os.environ["PYTHONPATH"] = os.pathsep.join(str(project / "src") for project in projects.values())
        try:
            for name, project in projects.items():
                for id in task_ids(name):
                    if name.startswith("stubbed"):
                        stubs += 1
                        results = [("stub", stub_error(id, f"{name}.tasks", project))]
                    else:
                        results = [*tried(id, f"{name}.tasks")]
                        done += len(results)
                    for what, fault in results:
                        wrong += [f"{id}, {what}: {fault}"] if fault else []
                        print(f"{id}, {what}: {fault or 'right'}", flush=True)
        finally:
            pool.shut_down()
    measured = f"{done + stubs - len(wrong)} of {done + stubs} ({done} trainings, {stubs} stubs)"
    record("isaaclab --new: train, evaluate, export at the first try", measured, "all", done > 8 and not wrong)


if __name__ == "__main__":
    main()
