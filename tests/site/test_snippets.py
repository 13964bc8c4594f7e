"""The snippets of the README and the guides do what the page says. Each page is a notebook that papermill executes."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest

import rlnb
import rlnb.backend
from rlnb.cli import demo
from rlnb.hooks import hookspecs, plugins
from rlnb.plugin import Command, Library

REPO = Path(__file__).parents[2]
GENERATED = {"changelog.md", "cli.md", "contributing.md", "results.md"}
GUIDES = [path for path in REPO.glob("docs/*.md") if path.name not in GENERATED]
PAGES = sorted([REPO / "README.md", *GUIDES, *REPO.glob("[pe]*s/*/README.md")])
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SIZES = {
    r"num_envs=\d+": "num_envs=4",
    r"max_iterations=\d+": "max_iterations=3",
    r"count >= 100": "count >= 3",
    r'"num_envs": 256\b': '"num_envs": 4',
    r'"num_envs": \[256, 512\]': '"num_envs": [4, 8]',
    r"n_trials=\d+": "n_trials=4",
    r"episodes=\d+": "episodes=4",
    r"envs=\[1, 4, 16, 64\]": "envs=[1, 2]",
    r"envs=\[0, 7\]": "envs=[0, 3]",
    r'since="[\d-]+"': 'since="2026-01-01"',
}
"""Numbers of the pages, and those that a test has time for."""
ON_A_CPU = {
    r'partition="gpu", nodes=2, gpus_per_node=4, walltime="08:00:00"': 'nodes=2, walltime="00:10:00"',
    r'gpus_per_node=1, walltime="04:00:00"\)': 'walltime="00:10:00"), device="cpu", max_iterations=3',
    r'gpus_per_node=1, walltime="02:00:00", python="/shared[^"]*"': 'walltime="00:10:00"',
    r'rlnb\.options\.python = "/shared.*': "",
    r"launcher=gpu\)": 'launcher=gpu, device="cpu", max_iterations=3)',
    r'"Isaac-Ant-Direct",\s+space=': '"Isaac-Ant-Direct", num_envs=4, space=',
    r'"Isaac-Cartpole-Direct", warm=True': '"Isaac-Cartpole-Direct", num_envs=4, warm=True',
    r"gpus=\[1, 2, 4, 8, 16\]": "gpus=[1, 2]",
    r"nodes=(\d), nproc_per_node=8\)\)": r'nodes=\1, nproc_per_node=1), device="cpu", max_iterations=3)',
    r"run\.watch\(\)  # queued": "start_pods(run)\nrun.watch()  # queued",
}
"""What a cluster of CPUs has instead of GPUs, and the pods that a platform would start."""
PODS = """
import os, subprocess
import rlnb


def start_pods(run):
    nodes = run.manifest.resources.nodes
    for node in range(nodes):
        pod = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "WORLD_SIZE": str(nodes), "RANK": str(node)}
        subprocess.Popen(["bash", "-c", run.job_script()], env={**os.environ, **pod})
"""


def blocks(page: Path) -> list[str]:
    """Return the Python snippets of a page, in its order."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [
        re.sub(f"^{indent}", "", code, flags=re.MULTILINE) for indent, language, code in found if language == "python"
    ]


def smaller(code: str, changes: Mapping[str, str]) -> str:
    for pattern, text in changes.items():
        code = re.sub(pattern, text, code)
    return code


def execute(cells: list[str], folder: Path) -> nbformat.NotebookNode:
    """Execute a notebook of these cells."""
    import papermill

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "python3", "language": "python"}
    nbformat.write(notebook, folder / "page.ipynb")
    with tempfile.TemporaryDirectory() as sockets:
        return papermill.execute_notebook(
            folder / "page.ipynb",
            folder / "done.ipynb",
            cwd=folder,
            progress_bar=False,
            kernel_name="python3",
            config=demo.kernel_over(Path(sockets)),
        )


def execute_page(name: str, folder: Path, changes: Mapping[str, str] = SIZES, first: str = "import rlnb") -> Any:
    cells = [first, *(smaller(block, changes) for block in blocks(REPO / name))]
    return execute([*cells, "for run in rlnb.runs():\n    run.wait()"], folder)


OWNERS = {
    "rlnb": rlnb,
    **{f"rlnb.{name}": getattr(rlnb, name) for name in ("backend", "launchers", "plugin", "results", "studies")},
    **dict.fromkeys(("run", "rlnb.get_run"), rlnb.Run),
    "runs": rlnb.Runs,
}
"""What the names before the dot stand for on the pages."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_every_call_of_rlnb_takes_the_arguments_of_the_page(page: Path) -> None:
    for block in blocks(page):
        if block.startswith("%%"):
            continue  # a cell of another language, or the module of a task
        for call in (node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)):
            owner, _, name = ast.unparse(call.func).rpartition(".")
            if owner not in OWNERS:
                continue
            function = getattr(OWNERS[owner], name)
            itself = [None] if inspect.isclass(OWNERS[owner]) else []
            keywords = {keyword.arg: None for keyword in call.keywords if keyword.arg}
            inspect.signature(function).bind(*itself, *call.args, **keywords)


def test_every_page_with_snippets_is_executed() -> None:
    files = (Path(__file__), REPO / "tests/cluster/test_guide.py", REPO / "tests/ssh/test_isaaclab.py")
    tests = "".join(file.read_text() for file in files)
    executed = set(re.findall(r'"((?:docs/|plugins/)?[\w/-]+\.md)"', tests))
    assert {str(page.relative_to(REPO)) for page in PAGES if blocks(page)} <= executed


def test_the_page_about_exports_reads_the_metadata_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    value = onnx.helper.make_tensor_value_info("obs", onnx.TensorProto.FLOAT, ["n", 2])
    actions = onnx.helper.make_tensor_value_info("actions", onnx.TensorProto.FLOAT, ["n", 2])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["obs"], ["actions"])], "policy", [value], [actions])
    model = onnx.helper.make_model(graph, ir_version=9, opset_imports=[onnx.helper.make_opsetid("", 18)])
    term = {"name": "joint_pos", "columns": [[0, 2]], "joint_names": ["slider", "pole"], "scale": 1.0}
    onnx.helper.set_model_props(model, {"observations": json.dumps([term])})
    onnx.save(model, tmp_path / "policy.onnx")
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(REPO / "docs/exports.md")
    exec(block, {})
    assert capsys.readouterr().out == "joint_pos [[0, 2]] ['slider', 'pole'] None 1.0\n"


def test_the_page_about_the_cost_of_trainings_is_executed(root: Path, tmp_path: Path) -> None:
    rlnb.train("Echo", library="echo", max_iterations=3).wait(60)
    execute_page("docs/goodput.md", tmp_path)


def test_the_ten_lines_are_ten() -> None:
    (block,) = blocks(REPO / "README.md")
    assert len(block.strip().splitlines()) == 10


def test_the_hooks_of_the_guide_register_and_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np
    import pluggy

    namespace: dict[str, Any] = {}
    for block in blocks(REPO / "docs/hooks.md"):
        exec(block, namespace)
    plugin = type(
        "Guide", (), {name: staticmethod(value) for name, value in namespace.items() if name.startswith("rlnb_")}
    )
    manager = pluggy.PluginManager("rlnb")
    manager.add_hookspecs(hookspecs)
    manager.register(plugin)
    manager.check_pending()
    assert {name for name in vars(hookspecs) if name.startswith("rlnb_")} <= {*namespace}
    assert manager.hook.rlnb_libraries() == [[Library(**vars_of(namespace["rlnb_libraries"]()[0]))]]
    assert manager.hook.rlnb_colorize(frames=np.ones((2, 4, 4, 1)), data_type="depth").shape == (2, 4, 4, 3)
    assert manager.hook.rlnb_colorize(frames=np.ones((2, 4, 4, 3)), data_type="rgb") is None
    wrapped = manager.hook.rlnb_wrap_command(command=Command(argv=("python",)), manifest=None)
    assert wrapped.argv[:2] == ("apptainer", "exec")


def vars_of(library: Library) -> dict[str, Any]:
    return {name: getattr(library, name) for name in library.__dataclass_fields__}


def test_the_plugin_of_the_guide_is_one(root: Path, tmp_path: Path) -> None:
    library, backend, roles, inputs, call, *contracts = blocks(REPO / "docs/plugins.md")
    namespace: dict[str, Any] = {}
    exec(inputs, namespace)
    assert namespace["DISTIL"].inputs["teacher"].required
    exec(library, namespace)
    (echo,) = namespace["rlnb_libraries"]()
    assert (echo.name, echo.backend) == ("echo", "rlnb_echo.backend:Echo")
    assert [task.id for task in namespace["rlnb_tasks"]()] == ["Echo"]
    assert plugins.agent_config(echo.default_agent)
    exec(backend, namespace)
    for name in ("train", "load_policy", "export"):
        protocol = rlnb.backend.Exporting if name == "export" else rlnb.backend.Backend
        described = {*inspect.signature(getattr(namespace["MyRl"], name)).parameters}
        assert described == {*inspect.signature(getattr(protocol, name)).parameters}
    exec(roles, namespace)
    assert [role.name for role in namespace["roles"](3, {})] == ["learner", "actor", "actor"]
    for contract in contracts:
        exec(contract, namespace)
    assert namespace["TestMyRl"].library == "my_rl"
    exported = namespace["write"](namespace["Actor"](), tmp_path)
    assert {name: path.name for name, path in exported.items()} == {"torchscript": "policy.pt", "onnx": "policy.onnx"}
    execute([call], tmp_path)


def test_the_tracker_of_the_guide_follows_a_run(root: Path, tmp_path: Path) -> None:
    plugin, process = (block for block in blocks(REPO / "docs/plugins.md") if "from rlnb.tracking" in block)
    namespace: dict[str, Any] = {}
    exec(plugin, namespace)
    run = rlnb.train("Echo", library="echo", max_iterations=3, tags=["my-tracker"]).wait(60)
    (problem,) = namespace["rlnb_check"](run.manifest)
    assert problem.fix == f"Run `{sys.executable} -m pip install my-tracker`."
    (tmp_path / "tracker.py").write_text(process)
    argv = [sys.executable, str(tmp_path / "tracker.py"), str(run.path)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    *rows, end = done.stdout.splitlines()
    assert [float(row.partition(" ")[0]) for row in rows] == run.metrics["reward"].frames
    assert end == "completed"


def test_the_guide_to_installing_starts_a_script_of_isaac_lab_2_3(root: Path, isaaclab_2_3: str) -> None:
    (block,) = blocks(REPO / "docs/installing.md")
    stand_in = {
        "/opt/IsaacLab/scripts/reinforcement_learning/rsl_rl": str(REPO / "tests/rig/isaaclab_2_3"),
        "/opt/IsaacLab/isaaclab.sh -p": isaaclab_2_3,
        '"4096"': '"4096", "--max_iterations", "3"',
    }
    namespace: dict[str, Any] = {}
    exec(smaller(block, stand_in), namespace)
    run = namespace["run"].wait(60)
    assert (run.state, run.task, len(run.metrics["reward"])) == ("completed", "Isaac-Ant-v0", 3)


with_isaaclab = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


class TestOnIsaacLab:
    """The pages that need the simulator."""

    pytestmark = with_isaaclab

    @pytest.fixture(autouse=True)
    def place(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from rlnb.worker.assets.packs import build

        monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))

    def test_the_ten_lines_of_the_readme_train_and_report(self, root: Path, tmp_path: Path) -> None:
        execute_page("README.md", tmp_path)
        (run,) = rlnb.runs()
        assert run.state == "completed"
        assert [evaluation.video is not None for evaluation in run.evaluations] == [False, True]
        (report,) = root.rglob("*.html")
        assert "<video" in report.read_text()

    @pytest.mark.slow
    def test_cameras(self, tmp_path: Path) -> None:
        execute_page("docs/cameras.md", tmp_path)
        assert (tmp_path / "film.gif").is_file()

    @pytest.mark.slow
    def test_tasks_from_scratch(self, root: Path, tmp_path: Path) -> None:
        done = execute_page("docs/scratch.md", tmp_path, first="%load_ext rlnb\nimport rlnb")
        assert {(run.task, run.state) for run in rlnb.runs()} == {
            ("Pole-Terms", "completed"),
            ("Pole-Direct", "completed"),
            ("Pole-Seen", "completed"),
        }
        assert "observation terms of 'policy': position 2, speed 2" in repr(rlnb.task("Pole-Terms").card())
        told = [str(output.get("data")) for cell in done.cells for output in cell.outputs]
        assert "Without Isaac Sim, Pole-Terms runs with sim.physics=NewtonCfg()" in "".join(told)

    @pytest.mark.slow
    def test_watching(self, tmp_path: Path) -> None:
        execute_page("docs/watching.md", tmp_path)
        assert (tmp_path / "cartpole.html").is_file()

    @pytest.mark.slow
    def test_notebooks(self, root: Path, tmp_path: Path) -> None:
        execute_page("docs/notebooks.md", tmp_path)
        (run,) = rlnb.runs()
        assert (run.task, run.state) == ("Slow-Cartpole", "completed")

    @pytest.mark.slow
    def test_hosted(self, tmp_path: Path) -> None:
        execute_page("docs/hosted.md", tmp_path, {**SIZES, **ON_A_CPU}, PODS)

    @pytest.mark.slow
    def test_skrl(self, tmp_path: Path) -> None:
        without_jax = () if importlib.util.find_spec("jax") else {r".*skrl_jax.*": ""}
        execute_page("plugins/rlnb-skrl/README.md", tmp_path, {**SIZES, **dict(without_jax)})

    @pytest.mark.slow
    def test_rl_games(self, tmp_path: Path) -> None:
        execute_page("plugins/rlnb-rl-games/README.md", tmp_path)
