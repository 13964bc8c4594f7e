"""The inputs of a library: which are missing, superfluous or unsuitable, and the copies that a run keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb import options
from rlnb.configs.card import AgentCard, ConfigField, TaskCard
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager
from rlnb.launchers import LocalLauncher
from rlnb.plugin import Input, Library, Manifest, hookimpl
from rlnb.records import trust
from rlnb.records.layout import RunDir
from rlnb.spec import Json
from rlnb.storage import entries, files
from rlnb.storage.serial import from_json
from rlnb.training import lookup
from rlnb.training.arguments import TrainArguments
from rlnb.training.create import create_run
from rlnb.training.plan import Plan, make_plan

DISTILS = {"class_name": "Distils"}
CLONES = Library(
    name="clones",
    backend="clones:Clones",
    simulator=False,
    inputs={"demos": Input(kind="rollouts"), "notes": Input(kind="file", required=False)},
)
TUNES = Library(name="tunes", backend="tunes:Tunes", simulator=False, inputs={"base": Input(kind="folder")})
STUDENT = Library(name="student", backend="student:Student", inputs={"teacher": Input(kind="policy", agent=DISTILS)})

FOLDERS = Library(
    name="folders",
    backend="folders:Folders",
    checkpoint_glob="step_*",
    checkpoint_pattern=r"step_(\d+)$",
    checkpoint_is_folder=True,
)


class Libraries:
    """A plugin with the libraries of this module."""

    @staticmethod
    @hookimpl
    def rlnb_libraries() -> list[Library]:
        return [CLONES, STUDENT, FOLDERS, TUNES]


class Keeps(LocalLauncher):
    """A launcher that starts nothing."""

    def submit(self, *_: object, **__: object) -> dict[str, Json]:
        return {}


@pytest.fixture(autouse=True)
def libraries(root: Path) -> Iterator[None]:
    rlnb.register(Libraries, name="inputs")
    yield
    manager().unregister(name="inputs")


@pytest.fixture
def distils(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the task be a direct one, whose agent config for the library distils."""
    fields = {"observation_space": ConfigField(type="int", value=4), "action_space": ConfigField(type="int", value=1)}
    with_card(monkeypatch, "direct", fields)


def with_card(monkeypatch: pytest.MonkeyPatch, workflow: str, fields: Mapping[str, ConfigField]) -> None:
    agents = {"student": AgentCard(fields={"class_name": ConfigField(type="str", value="Distils")})}
    versions = {"rlnb": rlnb.__version__}
    card = TaskCard(task="Balance", workflow=workflow, fields=fields, agents=agents, versions=versions)
    monkeypatch.setattr(lookup, "card_of", lambda *_: card)


def teacher(
    root: Path, id: str = "a-teacher", *, library: str = "rsl_rl", env: str = "action_space: 1", whole: bool = True
) -> RunDir:
    """Return a run with one checkpoint, as its training left it."""
    run = RunDir(root / "runs" / id)
    files.make_folder(run.logs / "params")
    task = rlnb.Task(id="Swing", source="/gone/swing.py")
    files.write_once(run.manifest, Manifest(run_id=id, created="", task=task, library=library))
    files.make_folder(run.source)
    (run.source / "swing.py").write_text("TASK = 1\n")
    (run.logs / "params" / "env.yaml").write_text(f"{env}\n")
    (run.logs / "model_1.pt").write_bytes(b"\x80weights" if whole else b"PK")
    return run


def plan_of(library: str, **arguments: Any) -> Plan:
    return make_plan(TrainArguments(task="Balance", library=library, **arguments))


def texts(plan: Plan) -> list[str]:
    """Return the problems of the inputs."""
    return [f"{problem.what} {problem.fix}" for problem in plan.problems if "input" in problem.what]


def test_a_missing_input_is_a_problem_with_the_fix(root: Path, distils: None) -> None:
    (text,) = texts(plan_of("clones"))
    assert text == (
        "clones needs the input 'demos', which is recorded rollouts. "
        "Use inputs={'demos': run.evaluate(record=10_000).rollout}."
    )
    (text,) = texts(plan_of("student"))
    assert text == "student needs the input 'teacher', which is a policy. Use inputs={'teacher': run}."


def test_weights_in_place_of_a_teacher_are_refused_with_the_fix(root: Path, distils: None) -> None:
    checkpoint = teacher(root).logs / "model_1.pt"
    (text,) = texts(plan_of("student", init_from=str(checkpoint)))
    assert text.endswith(f"Use inputs={{'teacher': {str(checkpoint)!r}}} in place of init_from.")


def test_a_superfluous_input_is_a_problem(root: Path, tmp_path: Path, distils: None) -> None:
    demos = tmp_path / "demos.npz"
    demos.touch()
    (text,) = texts(plan_of("clones", inputs={"demos": demos, "note": demos}))
    assert text == ("clones has no input 'note'. Its inputs: 'demos', 'notes'. Did you mean 'notes'? Use one of these.")
    (text,) = texts(make_plan(TrainArguments(task="Echo", library="echo", inputs={"teacher": demos})))
    assert text == "echo has no input 'teacher'. Its inputs: none. Leave inputs out."
    teacher(root)
    plan = plan_of("student", inputs={"teacher": "a-teacher"}, agent={"class_name": "Learns"})
    (text,) = texts(plan)
    assert text.startswith("student takes the input 'teacher' only with the agent config values class_name='Distils'.")
    assert texts(plan_of("student", agent={"class_name": "Learns"})) == [], "it needs none"


@pytest.mark.parametrize("value", [3, ["a"], {"a": 1}])
def test_an_odd_input_is_a_problem(root: Path, distils: None, value: Any) -> None:
    (text,) = texts(plan_of("student", inputs={"teacher": value}))
    assert text.startswith(f"The input 'teacher', {value!r}, is neither a run nor a file. Use run.")


def test_inputs_that_are_no_mapping_are_a_problem(root: Path) -> None:
    assert texts(plan_of("clones", inputs="demos.npz")) == [
        "inputs='demos.npz' is not a mapping of names. inputs={\"teacher\": run}"
    ]


def test_an_unsuitable_input_is_a_problem(root: Path, tmp_path: Path, distils: None) -> None:
    (text,) = texts(plan_of("student", inputs={"teacher": "no-such-run"}))
    assert text.startswith("The input 'teacher', 'no-such-run', is neither a file nor a run.")
    run = teacher(root)
    (text,) = texts(plan_of("clones", inputs={"demos": "a-teacher"}))
    assert "is recorded rollouts, and not a run. Use run.evaluate(record=10_000).rollout." in text
    foreign = tmp_path / "model_7.pt"
    foreign.write_bytes(b"\x80")
    (text,) = texts(plan_of("student", inputs={"teacher": foreign}))
    assert "belongs to no run, so its library and agent config are unknown. Use a run" in text
    (run.logs / "model_1.pt").unlink()
    (text,) = texts(plan_of("student", inputs={"teacher": "a-teacher"}))
    assert "has no complete checkpoint yet. Wait for one, or use another run." in text
    torn = teacher(root, "torn", whole=False).logs / "model_1.pt"
    (text,) = texts(plan_of("student", inputs={"teacher": torn}))
    assert "is not a complete checkpoint: it is torn." in text


def test_a_policy_of_another_user_needs_trust(root: Path, distils: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its task is imported in the worker."""
    teacher(root)
    monkeypatch.setattr(trust, "decided_by", lambda record: "belongs to the user 1234")
    (text,) = (problem.what for problem in plan_of("student", inputs={"teacher": "a-teacher"}).problems)
    assert "belongs to the user 1234" in text
    assert "module: " in text
    plan = plan_of("student", inputs={"teacher": "a-teacher"}, trust=True)
    assert (plan.problems, plan.options) == ((), {"trust": True})


@pytest.mark.parametrize(
    ("library", "text"),
    [
        ("echo", "is of echo, which has no policies. Use a run of another library."),
        ("gone", "was trained with gone, which is not installed. Install the plugin of gone."),
    ],
)
def test_a_run_that_has_no_policy_here_is_refused(root: Path, distils: None, library: str, text: str) -> None:
    run = teacher(root, library=library)
    assert texts(plan_of("student", inputs={"teacher": run.logs / "model_1.pt"})) == [
        f"The input 'teacher', a-teacher, {text}"
    ]


def test_a_teacher_with_other_actions_is_refused(root: Path, distils: None) -> None:
    teacher(root, env="action_space: 8")
    assert texts(plan_of("student", inputs={"teacher": "a-teacher"})) == [
        "The input 'teacher', a-teacher, has 8 actions, but Balance has 1. Use a run of Balance."
    ]
    wider = rlnb.Task(id="Balance", overrides={"action_space": 8})
    assert texts(make_plan(TrainArguments(task=wider, library="student", inputs={"teacher": "a-teacher"}))) == []


def test_a_teacher_with_other_terms_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ("actions.push.scale", "observations.policy.angle.clip", "observations.teacher.speed.clip")
    with_card(monkeypatch, "manager-based", {path: ConfigField(type="any") for path in paths})
    teacher(root, env="actions: {push: {scale: 1}}\nobservations: {policy: {joined: true, speed: {clip: 1}}}")
    teacher(root, "other", env="actions: {pull: {scale: 1}}\nobservations: {policy: {mass: {clip: 1}}}")
    assert texts(plan_of("student", inputs={"teacher": "a-teacher"})) == [], "the group named teacher has its terms"
    acts, observes = texts(plan_of("student", inputs={"teacher": "other"}))
    assert acts == "The input 'teacher', other, has the actions pull, but Balance has push. Use a run of Balance."
    assert observes.startswith("The input 'teacher', other, observes mass, which is no observation group of Balance.")


def test_a_run_keeps_its_inputs_when_their_run_is_deleted(root: Path, distils: None) -> None:
    run = teacher(root)
    plan = plan_of("student", inputs={"teacher": "a-teacher"})
    assert plan.manifest.inputs == {"teacher": "a-teacher/logs/model_1.pt"}
    new = create_run(options.folders, plan.manifest, Keeps(), plan.options, inputs=plan.inputs, warm=False)
    files.replace_json(run.manifest, {})
    (run.logs / "model_1.pt").unlink()
    (run.source / "swing.py").unlink()
    folder = new.record.folder
    assert folder.input("teacher", new.manifest.inputs["teacher"]).read_bytes() == b"\x80weights"
    copy = folder.input_run("teacher")
    assert from_json(Manifest, files.read_json(copy.manifest) or {}).run_id == "a-teacher"
    assert (copy.source / "swing.py").read_text() == "TASK = 1\n"
    assert [found.id for found in rlnb.runs(where={"inputs.teacher": "a-teacher/logs/model_1.pt"})] == [new.id]


def test_a_checkpoint_that_is_a_folder_is_copied_with_all_its_files(root: Path, distils: None) -> None:
    run = teacher(root, library="folders")
    (run.logs / "model_1.pt").unlink()
    step = run.logs / "step_4"
    files.make_folder(step / "nested")
    (step / "nested" / "weights.json").write_text("{}")
    for value in ("a-teacher", step, "a-teacher/logs/step_4"):
        plan = plan_of("student", inputs={"teacher": value})
        assert texts(plan) == []
        assert plan.manifest.inputs == {"teacher": "a-teacher/logs/step_4"}
    new = create_run(options.folders, plan.manifest, Keeps(), plan.options, inputs=plan.inputs, warm=False)
    copy = new.record.folder.input("teacher", new.manifest.inputs["teacher"])
    assert (copy / "nested" / "weights.json").read_text() == "{}"
    (text,) = texts(plan_of("student", inputs={"teacher": step / "nested"}))
    assert "is neither a file nor a run" in text
    (step / "nested" / "weights.json").write_text("{")
    (text,) = texts(plan_of("student", inputs={"teacher": step}))
    assert "is not a complete checkpoint: it is torn." in text


def test_a_folder_is_copied_with_all_its_files(
    root: Path, tmp_path: Path, distils: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base-model"
    (base / "nested").mkdir(parents=True)
    (base / "nested" / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "blob").write_text("{}")
    (base / "config.json").symlink_to(tmp_path / "blob")  # as in the cache of Hugging Face
    (base / "missing").mkdir()
    monkeypatch.chdir(base / "missing")
    for value in (base, "..", "../../base-model/"):
        plan = plan_of("tunes", inputs={"base": value})
        assert texts(plan) == []
        assert plan.manifest.inputs == {"base": str(base)}
    new = create_run(options.folders, plan.manifest, Keeps(), plan.options, inputs=plan.inputs, warm=False)
    copy = new.record.folder.input("base", new.manifest.inputs["base"])
    assert copy.name == "base-model"
    assert (copy / "nested" / "model.safetensors").read_bytes() == b"weights"
    assert (copy / "config.json").read_text() == "{}"
    assert not (copy / "config.json").is_symlink()


def test_an_unsuitable_folder_is_a_problem(
    root: Path, tmp_path: Path, distils: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.pt"
    file.touch()
    for value in (file, tmp_path / "absent"):
        (text,) = texts(plan_of("tunes", inputs={"base": value}))
        assert text.strip() == f"The input 'base', {str(value)!r}, is not a folder. Use \"path/of/folder\"."
    (tmp_path / "empty").mkdir()
    (text,) = texts(plan_of("tunes", inputs={"base": tmp_path / "empty"}))
    assert text.strip() == f"The input 'base', {tmp_path / 'empty'}, has no files. Use another folder."
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "latest").symlink_to(tmp_path / "empty")
    (text,) = texts(plan_of("tunes", inputs={"base": tmp_path / "linked"}))
    assert "latest, which does not lead to a file. Use a folder of files." in text
    teacher(root)
    for value in ("a-teacher", root / "runs" / "a-teacher"):
        (text,) = texts(plan_of("tunes", inputs={"base": value}))
        assert text.strip() == "The input 'base' is a folder, and not a run. Use \"path/of/folder\"."
    (text,) = texts(plan_of("clones", inputs={"demos": tmp_path}))
    assert text.startswith(f"The input 'demos', {str(tmp_path)!r}, is neither a file nor a run.")
    monkeypatch.setattr(entries, "MOST_FILES", 0)
    (text,) = texts(plan_of("tunes", inputs={"base": tmp_path}))
    assert "files, which are too many for a copy. Use a smaller folder." in text


def test_the_origin_of_an_input_is_an_input(root: Path, tmp_path: Path, distils: None) -> None:
    """The lines of a report, which start a run again, have the origins."""
    teacher(root)
    plan = plan_of("student", inputs={"teacher": "a-teacher/logs/model_1.pt"})
    assert plan.manifest.inputs == {"teacher": "a-teacher/logs/model_1.pt"}
    demos = tmp_path / "demos.npz"
    demos.touch()
    assert plan_of("clones", inputs={"demos": demos}).manifest.inputs == {"demos": str(demos)}
    assert json.loads(json.dumps(dict(plan.manifest.inputs)))
    assert plugins.library("student").inputs["teacher"].required
