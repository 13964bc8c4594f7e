"""Releases of Isaac Lab: refused, untested, and with a private API that has another name."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.doctor import interpreter
from rlnb.storage import files
from rlnb.version import ISAACLAB_REQUIREMENT, untested
from rlnb.worker.isaac import isaaclab, release

Install = Callable[[str], None]
FEATURE = "an evaluation"


@pytest.mark.parametrize("number", ["2.3.2.post1", "4.0.0", "30.0"])
def test_another_major_version_is_refused_with_both_fixes(install: Install, number: str) -> None:
    install(number)
    with pytest.raises(rlnb.RlnbError) as caught:
        release.check()
    assert f"isaaclab {number} is installed" in str(caught.value)
    assert f"pip install '{ISAACLAB_REQUIREMENT}'" in str(caught.value)
    assert "rlnb.train(script=...)" in str(caught.value)


@pytest.mark.parametrize(("number", "warns"), [("3.0.0", False), ("3.0.4.post1", False), ("3.1.0", True)])
def test_another_release_line_is_only_a_warning(
    install: Install, number: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    install(number)
    release.check()
    assert [record.message for record in caplog.records] == ([untested(number)] if warns else [])


def test_a_missing_part_is_named_with_the_feature_and_the_installed_version(install: Install) -> None:
    install("3.1.0")
    manager = types.SimpleNamespace(_episode_sums={"alive": 1.0})
    assert release.required(manager, "_episode_sums", FEATURE) == {"alive": 1.0}
    with pytest.raises(rlnb.RlnbError) as caught:
        release.required(manager, "_sums", FEATURE)
    assert str(caught.value) == (
        "SimpleNamespace._sums is not in isaaclab 3.1.0, and an evaluation needs it. "
        f"Use `pip install '{ISAACLAB_REQUIREMENT}'`."
    )


@pytest.mark.parametrize("module", ["json", "json.presets", "no_such_lab.utils"])
def test_a_missing_module_is_named_as_a_missing_part(install: Install, module: str) -> None:
    install("3.1.0")
    with pytest.raises(rlnb.RlnbError, match=rf"{module}\.enumerate_presets is not in isaaclab 3\.1\.0, and"):
        release.required(module, "enumerate_presets", FEATURE)


def test_a_package_that_a_module_imports_in_vain_is_not_a_missing_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_a_lab.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        release.required("of_a_lab", "part", FEATURE)


@pytest.mark.parametrize(("number", "notes"), [("3.0.0", []), ("3.1.0", [untested("3.1.0")])])
def test_an_error_that_a_changed_part_may_cause_says_that_the_release_is_untested(
    install: Install, number: str, notes: list[str]
) -> None:
    install(number)
    errors = AttributeError("no attribute"), ImportError("cannot import name"), TypeError("unexpected argument")
    for error in errors:
        release.annotate(error)
        assert getattr(error, "__notes__", []) == notes
    other = ValueError("not a joint")
    release.annotate(other)
    assert not hasattr(other, "__notes__")


@pytest.mark.isaaclab
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "import isaaclab_tasks.manager_based.locomotion.velocity.mdp",
            "does not have isaaclab_tasks.manager_based, a",
        ),
        ("from isaaclab_tasks.direct import cartpole", "does not have isaaclab_tasks.direct, a part of Isaac Lab 2.x."),
        ("from isaaclab.utils.noise import AdditiveUniformNoiseCfg", "does not have AdditiveUniformNoiseCfg, a part"),
        ("import isaacsim.core.utils.prims", "isaacsim is a part of Isaac Sim, which"),
        ("import omni.ext", "omni.ext is a part of Isaac Sim, which"),
        ("from . import mdp", "A cell is a module without a package. Import by the full name"),
        ("import no_such_package.tasks", "has no package 'no_such_package'. Use pip to install it there, or add"),
    ],
)
def test_the_fix_of_an_import_that_fails_is_noted(line: str, note: str) -> None:
    if importlib.util.find_spec("isaacsim") is not None:
        pytest.skip("Isaac Sim is installed here")
    with pytest.raises(ImportError) as caught:
        exec(line, {"__name__": "a_cell"})
    release.annotate(caught.value)
    assert note in caught.value.__notes__[0]


def test_the_fix_of_a_scene_as_in_isaaclab_2_is_noted() -> None:
    class InteractiveScene:
        pass

    class Mine:
        pass

    for scene, notes in ((InteractiveScene(), [f"Isaac Lab 2.x had it. {release.IN_SCENE}"]), (Mine(), [])):
        with pytest.raises(AttributeError) as caught:
            scene.clone_environments(copy_from_source=False)  # type: ignore[attr-defined]
        release.annotate(caught.value)
        assert [note for note in getattr(caught.value, "__notes__", []) if "2.x" in note] == notes


def test_without_its_list_of_presets_a_task_has_unknown_selectors(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("3.1.0")
    module = "isaaclab_tasks.utils.preset_cli"
    monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
    selectors = isaaclab.preset_names("Isaac-Cartpole")
    assert (selectors.physics, selectors.renderer, selectors.presets) == ((), (), ())
    assert selectors.error.startswith(f"{module}.enumerate_task_presets is not in isaaclab 3.1.0, and the check of")


RENAMED = Path("managers", "reward_manager.py")


@pytest.fixture(scope="module")
def isaaclab_3_1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Isaac Lab as a release 3.1 that has renamed a private attribute: links to the installed files, and one copy."""
    folder = tmp_path_factory.mktemp("isaaclab-3.1")
    tested = importlib.metadata.distribution("isaaclab")
    package = Path(str(tested.locate_file("isaaclab")))
    for inside in (Path(), RENAMED.parent):
        (folder / "isaaclab" / inside).mkdir(parents=True)
        for child in (package / inside).iterdir():
            if child.name not in ("__pycache__", RENAMED.parts[len(inside.parts)]):
                (folder / "isaaclab" / inside / child.name).symlink_to(child)
    text = (package / RENAMED).read_text()
    assert "_episode_sums" in text
    (folder / "isaaclab" / RENAMED).write_text(text.replace("_episode_sums", "_sums_of_episodes"))
    info = folder / "isaaclab-3.1.0.dist-info"
    info.mkdir()
    metadata = tested.read_text("METADATA") or ""
    (info / "METADATA").write_text(metadata.replace(f"\nVersion: {tested.version}\n", "\nVersion: 3.1.0\n", 1))
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    yield folder
    patch.undo()


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_on_another_release_line_only_the_call_that_needs_a_renamed_part_fails(
    isaaclab_3_1: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    files.warn_once.cache_clear()
    task, warning = "Isaac-Cartpole", untested("3.1.0")
    finding = interpreter.check_isaaclab(interpreter.look(sys.executable, 30.0))
    assert (finding.level, warning in finding.text) == ("warning", True)
    shown = rlnb.preview(task, num_envs=2, steps=1, device="cpu")
    assert shown.frames["preview"]["rgb"].any()
    log = rlnb.simulator().log
    assert log is not None
    assert log.read_text().count(warning) == 1
    run = rlnb.train(task, num_envs=4, max_iterations=2, device="cpu").wait(300)
    assert run.started is not None
    assert run.started.versions["isaaclab"] == "3.1.0"
    assert [record.message for record in caplog.records].count(warning) == 1, "once for each kernel"
    with pytest.raises(
        rlnb.RlnbError, match=r"RewardManager\._episode_sums is not in isaaclab 3\.1\.0, and an"
    ) as caught:
        run.evaluate(episodes=4)
    assert "isaaclab 3.1.0" in str(caught.value)
    assert f"Use `pip install '{ISAACLAB_REQUIREMENT}'`." in str(caught.value)
    assert run.evaluations == []
    assert rlnb.preview(task, num_envs=2, steps=0, device="cpu").frames["preview"]["rgb"].any(), "the rest still works"
