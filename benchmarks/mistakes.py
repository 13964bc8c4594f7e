"""Mistakes of a new user, planted one by one: is each named, at once, with the user's own line, and in a few lines?

python benchmarks/mistakes.py              # all 20, about ten minutes
python benchmarks/mistakes.py --case nan   # those whose name has the word, without a row in RESULTS.md

A real kernel with real Isaac Lab runs the cells of docs/scratch.md and of the quickstart, each with one replacement,
the mistake, and then the next call that a user would make. The first message is the output of that call: the text of an
error, or a preview with its findings. A status line is no part of it. Lines are those of a notebook that is 120
characters wide. The machine must have neither a GPU nor Isaac Sim: with these, two of the mistakes are none.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from against_isaaclab import asset_root
from jupyter_client.manager import KernelManager
from results import record

REPOSITORY = Path(__file__).parents[1]
TIMEOUT_S = 500
STATUS = re.compile(r"(^$|\.\.\.$|: [\d.]+ s$)")
"""Text of a status line, while it waits and when it ends."""
MOST_LINES, WIDTH = 8, 120
BOUND_NAMED, BOUND_FIRST = 20, 18
PREVIEW = "rlnb.preview(NAME, device='cpu')"
TRAIN = "run = rlnb.train(NAME, num_envs=16, max_iterations=3, device='cpu')\nrun.wait()"
DEEP_CHECK = "rlnb.check(NAME, deep=True, device='cpu')"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One mistake. NAME in a call is the name of the task, LINE in a pattern the number of the wrong line."""

    mistake: str
    task: str = "Pole-Terms"
    """Name of the cell that has the mistake."""
    old: str = ""
    new: str = ""
    """Text of that cell, and what replaces it."""
    at: str = ""
    """A part of the wrong line; empty if that is the first line of ``new``."""
    call: str = PREVIEW
    """What the user runs after the cell."""
    named: str
    """Pattern of the message that names the mistake."""
    own: str = "LINE"
    """Pattern of the user's own line or term."""
    later: str = ""
    """Another call that may name the mistake if the first message does not."""


CASES = (
    Case(
        mistake="unclosed parenthesis",
        old=".sum(dim=-1)",
        new=".sum(dim=-1",
        at="return torch.cos(",
        named=r"'\(' was never closed",
    ),
    Case(
        mistake="import of a name that does not exist",
        old="from isaaclab.scene import InteractiveSceneCfg",
        new="from isaaclab.scene import InteractiveScenesCfg",
        named="cannot import name 'InteractiveScenesCfg'",
    ),
    Case(
        mistake="no env class",
        task="Cartpole-Upright",
        old="class UprightEnv(CartpoleEnv):",
        new="class UprightEnv:",
        named="expected one env class",
        own="UprightCfg",
    ),
    Case(
        mistake="NameError in the reward",
        task="Pole-Seen",
        old="return torch.cos(self.robot.data.joint_pos",
        new="return torch.cos(robot.data.joint_pos",
        named="name 'robot' is not defined",
    ),
    Case(
        mistake="Isaac Lab 2.x idiom",
        task="Pole-Seen",
        old="    def _pre_physics_step",
        new="    def _setup_scene(self):\n        self.scene.clone_environments(copy_from_source=False)\n\n"
        "    def _pre_physics_step",
        at="clone_environments",
        named=r"no attribute 'clone_environments'(.|\n)*Isaac Lab 2\.x had it\. Put robots into the scene's config",
    ),
    Case(
        mistake='device="cuda" on a CPU machine',
        task="Pole-Seen",
        old="self.pole, _ = self.robot",
        new='self.goal = torch.zeros(self.num_envs, device="cuda")\n        self.pole, _ = self.robot',
        named="NVIDIA driver",
    ),
    Case(mistake="no physics in the config", named=r"Without Isaac Sim.* sim\.physics=NewtonCfg\(\)", own="NAME"),
    Case(
        mistake="observation term of shape (N,)",
        old="        speed = managers.ObservationTermCfg(func=mdp.joint_vel_rel)",
        new="        tilt = managers.ObservationTermCfg(func=lambda env: upright(env, POLE))",
        at="tilt = ",
        named=r"'tilt' returned values of the shape \(\d+,\)",
    ),
    Case(
        mistake="reward term of shape (N, 1)",
        old=".sum(dim=-1)",
        new="",
        at="def upright",
        named=r"'upright' returned a value of the shape \(\d+, 1\)",
    ),
    Case(
        mistake="observation with the channels first",
        task="Pole-Seen",
        old="observation_space = [3, 64, 64]",
        new="observation_space = [64, 64, 3]",
        named=r"'policy' has the shape \(4, 3, 64, 64\), but its space says \(4, 64, 64, 3\)",
        own="'policy'",
    ),
    Case(
        mistake="forgotten reset, direct",
        task="Pole-Seen",
        old="        self.robot.write_joint_position_to_sim_index(position=position, env_ids=env_ids)\n"
        "        self.robot.write_joint_velocity_to_sim_index(velocity=torch.zeros_like(position), env_ids=env_ids)\n",
        new="",
        at="def _reset_idx",
        named="reset does not change the joint",
        own="'(cart_to_pole|slider_to_cart)'",
        later=DEEP_CHECK,
    ),
    Case(
        mistake="forgotten reset of one joint, manager-based",
        old='params={"position_range"',
        new='params={"asset_cfg": POLE, "position_range"',
        named="reset does not change the joint 'slider_to_cart'",
        own="'slider_to_cart'",
        later=DEEP_CHECK,
    ),
    Case(
        mistake="nan at step 40, preview of 60 steps",
        old="    return torch.cos(env",
        new="    if env.common_step_counter == 40:\n        return torch.full((env.num_envs,), torch.nan)\n"
        "    return torch.cos(env",
        call="rlnb.preview(NAME, steps=60, device='cpu')",
        named=r"'upright' is nan in step 4\d",
        own="'upright'",
    ),
    Case(
        mistake="nan at step 40, training",
        old="    return torch.cos(env",
        new="    if env.common_step_counter == 40:\n        return torch.full((env.num_envs,), torch.nan)\n"
        "    return torch.cos(env",
        call=TRAIN,
        named=r"'upright' is nan .*step (39|40)",
        own="'upright'",
    ),
    Case(
        mistake="camera that misses the robot",
        task="Pole-Seen",
        old="pos=(-5.0, 0.0, 2.0)",
        new="pos=(5.0, 0.0, 2.0)",
        named="shows no body",
        own="'camera'",
    ),
    Case(
        mistake="endless loop in _pre_physics_step",
        task="Pole-Seen",
        old="        self.force = 100.0 * actions",
        new="        while True: self.force = 100.0 * actions",
        named="endless loop",
    ),
    Case(
        mistake="missing agent config, pictures",
        task="Pole-Seen",
        call="run = rlnb.train(NAME, num_envs=4, max_iterations=1, device='cpu')\nrun.wait()\n"
        "next(text for name, text in run.overview() if name == 'agent config')",
        named="the generic config .* fitted to 'policy', a picture",
        own="'policy'",
    ),
    Case(
        mistake="TypeError of torch in a term, training",
        old="return torch.cos(env",
        new="held = torch.where(env.scene['robot'], 1.0)\n    return held * torch.cos(env",
        call=TRAIN,
        named=r"TypeError: where\(\) received an invalid combination of arguments",
    ),
    Case(
        mistake="typos of overrides and agent values",
        call="task = rlnb.task(NAME, overrides={'episode_lenght_s': 3.0})\n"
        "rlnb.train(task, agent={'algorithm.gama': 0.9, 'lr': 1e-3})",
        named=r"'episode_length_s'(.|\n)*'algorithm\.gamma'(.|\n)*'algorithm\.learning_rate'",
        own=r"'episode_lenght_s'(.|\n)*'algorithm\.gama'(.|\n)*'lr'",
    ),
    Case(
        mistake="wrong arguments of calls",
        call="rlnb.train(NAME, seeds=3)\n\nrlnb.train(NAME, launcher=rlnb.slurm())\n\n"
        "run = rlnb.train(NAME, num_envs=16, max_iterations=2, device='cpu').wait()\n\nrun.resume(max_iterations=1)",
        named=r"Did you mean 'seed'(.|\n)*walltime=(.|\n)*would end at 1\b",
        own=r"'seeds'(.|\n)*rlnb\.slurm\(\)(.|\n)*run\.resume\(",
    ),
)


def cells() -> dict[str, str]:
    """Return the cells of tasks, by name."""
    page = (REPOSITORY / "docs" / "scratch.md").read_text()
    notebook = nbformat.read(REPOSITORY / "notebooks" / "01_quickstart.ipynb", as_version=4)
    texts = [*re.findall(r"```python\n(.*?)```", page, re.DOTALL), *(cell.source for cell in notebook.cells)]
    return {text.split(maxsplit=2)[1]: text for text in texts if text.startswith("%%task")}


class Kernel:
    """A real kernel of a notebook."""

    def __init__(self, root: Path) -> None:
        self._sockets = tempfile.TemporaryDirectory()
        self._manager = KernelManager(transport="ipc", ip=f"{self._sockets.name}/kernel")
        self._manager.start_kernel(env={**os.environ, "RLNB_ROOT": str(root), "JPY_SESSION_NAME": "mistakes.ipynb"})
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=TIMEOUT_S)
        self.run("import rlnb\n%load_ext rlnb")

    def run(self, code: str) -> tuple[str, bool]:
        """Execute a cell; return its output without status lines, and whether it has succeeded."""
        shown: list[str] = []

        def hear(message: Any) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                shown.append(content["text"].rstrip("\n"))
            elif message["msg_type"] == "execute_result":
                shown.append(content["data"]["text/plain"])
            elif message["msg_type"] == "display_data" and not STATUS.search(text := content["data"]["text/plain"]):
                shown.append(text)
            elif message["msg_type"] == "error":
                shown.append("\n".join(content["traceback"]))

        reply = self._client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=hear, allow_stdin=False)
        return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(shown)).strip("\n"), reply["content"]["status"] == "ok"

    def close(self) -> None:
        """End the kernel, and its warm simulator with it."""
        self.run("rlnb.simulator().close()")
        self._client.stop_channels()
        self._manager.shutdown_kernel()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the user has seen of a mistake."""

    named: bool
    first: bool
    own: bool
    lines: int
    seconds: float

    @property
    def verdict(self) -> str:
        """The measured values, in words."""
        words = ["named" if self.named else "NOT NAMED", "first" if self.first else "NOT FIRST"]
        words.append("own line or term" if self.own else "NO OWN LINE")
        return f"{', '.join(words)}, {self.lines} lines, {self.seconds:.1f} s"


def planted(case: Case, text: str, name: str) -> tuple[str, int]:
    """Return the cell with the mistake, under another name, and the number of the wrong line."""
    assert not case.old or text.count(case.old) == 1, (
        f"{case.mistake}: the cell has {text.count(case.old)} times {case.old!r}"
    )
    text = text.replace(case.old, case.new) if case.old else text
    wrong = case.at or case.new.partition("\n")[0]
    numbers = [number for number, line in enumerate(text.splitlines(), 1) if wrong in line]
    _, *body = text.splitlines(keepends=True)
    return "".join([f"%%task {name}\n", *body]), numbers[0] if wrong else 0


def outcome(kernel: Kernel, case: Case, text: str, number: int) -> Outcome:
    """Make a mistake as a user would, and look at the messages."""
    name = f"Planted-{number}"
    cell, line = planted(case, text, name)
    begin_s = time.monotonic()
    said, succeeded = kernel.run(cell)
    messages = [said]
    if succeeded:
        messages = []
        for call in case.call.split("\n\n"):
            begin_s = time.monotonic()
            messages.append(kernel.run(call.replace("NAME", repr(name)))[0])
    seconds = time.monotonic() - begin_s
    message = "\n".join(messages)
    first = bool(re.search(case.named, message))
    named = first
    print(f"{number}. {case.mistake}", *message.splitlines(), sep="\n    ", flush=True)
    if case.later and not first:
        later, _ = kernel.run(case.later.replace("NAME", repr(name)))
        named = bool(re.search(case.named, later))
        print("  later:", *later.splitlines(), sep="\n    ", flush=True)
    own = case.own.replace("LINE", rf"line {line}\b").replace("NAME", name)
    return Outcome(
        named=named,
        first=first,
        own=bool(re.search(own, message)),
        lines=max(map(lines, messages)),
        seconds=seconds,
    )


def lines(message: str) -> int:
    """Return the number of lines of a message in a notebook, which wraps long ones."""
    return sum(max(1, math.ceil(len(line) / WIDTH)) for line in message.splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="", help="a part of the names of the mistakes")
    word = parser.parse_args().case
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    texts = cells()
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="rlnb-bench-") as root:
        kernel = Kernel(Path(root))
        try:
            kernel.run("rlnb.preview('Isaac-Cartpole-Direct', device='cpu')")  # starts the warm simulator
            for number, case in enumerate(CASES, 1):
                if word in case.mistake:
                    outcomes[case.mistake] = outcome(kernel, case, texts[case.task], number)
                    print(f"  {outcomes[case.mistake].verdict}", flush=True)
        finally:
            kernel.close()
    if not word:
        report(outcomes)


def report(outcomes: Mapping[str, Outcome]) -> None:
    """Add the row to RESULTS.md."""
    found = outcomes.values()
    named, first = sum(each.named for each in found), sum(each.named and each.first for each in found)
    own, most = sum(each.own for each in found), max(each.lines for each in found)
    seconds = sorted(each.seconds for each in found)
    misses = [
        mistake for mistake, each in outcomes.items() if not (each.first and each.own and each.lines <= MOST_LINES)
    ]
    record(
        "planted mistakes of a new user: named, in the first message, with the own line or term, longest message",
        f"{named}, {first}, {own} of {len(outcomes)}; {most} lines; {seconds[len(seconds) // 2]:.1f} s (median), "
        f"{seconds[-1]:.0f} s at most; short of it: {', '.join(misses) or 'none'}",
        f"{BOUND_NAMED}, >= {BOUND_FIRST}, {BOUND_NAMED} of {len(CASES)}; <= {MOST_LINES} lines",
        named == own == BOUND_NAMED and first >= BOUND_FIRST and most <= MOST_LINES,
    )


if __name__ == "__main__":
    main()
