"""The plugins of a process: which work, which are left out, and what is said of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.hooks.plugin import HookError, Plugin
from rlnb.hooks.registry import hooks_of, installed, manager, package_versions, register, registry
from rlnb.plugin import Library, hookimpl

Install = Callable[..., None]
HOOK = "import rlnb\n\n\n@rlnb.plugin.hookimpl\n"
LIBRARY = f"{HOOK}def rlnb_libraries():\n    return [rlnb.plugin.Library(name='{{name}}', backend='a:B')]\n"


def of(name: str) -> Plugin:
    return next(plugin for plugin in installed() if plugin.name == name)


def test_an_installed_plugin_is_found_by_its_entry_point(install: Install) -> None:
    install("fine", LIBRARY.format(name="fine"))
    assert plugins.library("fine").backend == "a:B"
    assert (of("fine").distribution, of("fine").version, of("fine").error) == ("rlnb-fine", "1.0", "")
    assert hooks_of(of("fine")) == ["rlnb_libraries"]


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("1 / 0", "its import raised ZeroDivisionError"),
        ("import sys; sys.exit(3)", r"its import called sys.exit\(3\)"),
        (f"{HOOK}def rlnb_check(manifst):\n    return []", r"PluginValidationError: .*rlnb_check\(manifst\)"),
        (f"{HOOK[:-1]}(wrapper=True)\ndef rlnb_check(manifest):\n    yield", "rlnb_check is a wrapper"),
        (f"{HOOK[:-1]}(hookwrapper=True)\ndef rlnb_check(manifest):\n    yield", "rlnb_check is a wrapper"),
        (f"{HOOK}def rlnb_libraries():\n    raise ValueError('no')", r"rlnb_libraries\(\) raised ValueError: no"),
        (f"{HOOK}def rlnb_launchers():\n    return 'no'", r"rlnb_launchers\(\) returned str, which is not a list"),
        (f"{HOOK}def rlnb_tasks():\n    raise SystemExit(3)", r"rlnb_tasks\(\) called sys.exit\(3\)"),
        (f"{HOOK}def rlnb_asset_packs():\n    pass", r"rlnb_asset_packs\(\) returned None, which is not a list"),
    ],
)
def test_a_plugin_that_fails_is_left_out_with_one_warning(install: Install, code: str, fault: str) -> None:
    install("broken", f"{code}\n")
    looks = (plugins.libraries, plugins.launchers, plugins.tasks, plugins.asset_packs) * 2
    with pytest.warns(UserWarning, match="plugin") as caught:
        assert all(look() is not None for look in looks)
    (text,) = [str(warning.message) for warning in caught]
    assert re.match(rf"The plugin 'broken' \(rlnb-broken 1\.0\) is left out: {fault}", text), text
    assert text.endswith(" Update or uninstall rlnb-broken.")
    assert re.match(fault, of("broken").error)
    assert not manager().has_plugin("broken")
    assert hooks_of(of("broken")) == []
    assert "echo" in plugins.libraries()


def test_a_list_of_plugins_shows_the_errors_in_place_of_warnings(install: Install) -> None:
    install("broken", f"{HOOK}def rlnb_tasks():\n    return 3\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of("broken").error.startswith("rlnb_tasks() returned int")
        plugins.libraries()


def test_a_plugin_that_fails_in_one_hook_registers_nothing_at_all(install: Install) -> None:
    install("half", LIBRARY.format(name="half") + "\n\n@rlnb.plugin.hookimpl\ndef rlnb_tasks():\n    return 3\n")
    with pytest.warns(UserWarning, match=r"'half' .* is left out: rlnb_tasks\(\) returned int"):
        assert "half" not in plugins.libraries()


def test_a_plugin_that_fails_takes_no_name_from_another_one(install: Install) -> None:
    install("half", LIBRARY.format(name="echo") + "\n\n@rlnb.plugin.hookimpl\ndef rlnb_tasks():\n    return 3\n")
    with pytest.warns(UserWarning, match="plugin") as caught:
        assert plugins.library("echo").backend.startswith("rlnb_echo")
    assert len(caught) == 1


def test_a_hook_that_looks_up_what_plugins_register_is_left_out(install: Install) -> None:
    install("curious", f"{HOOK}def rlnb_libraries():\n    return [*rlnb.libraries().values()]\n")
    with pytest.warns(UserWarning, match=r"'curious' .* left out: .* cannot look up such objects\. Name them by str"):
        assert "echo" in plugins.libraries()


def test_threads_that_look_up_plugins_at_once_see_the_same(install: Install) -> None:
    slow = "import time\n\nimport rlnb\n\ntime.sleep(0.1)\n"
    install("slow", f"{slow}@rlnb.plugin.hookimpl\ndef rlnb_tasks():\n    time.sleep(0.1)\n    return 3\n")
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore")
        answers = list(pool.map(lambda _: (id(manager()), [*plugins.libraries()]), range(4)))
    assert answers == [answers[0]] * 4


def test_the_version_of_each_package_is_known_also_of_one_that_is_left_out(install: Install) -> None:
    install("broken", "1 / 0")
    with pytest.warns(UserWarning, match="'broken'"):
        register(by_hand(), "mine")
    versions = package_versions()
    assert versions["rlnb-broken"] == "1.0"
    assert {"rlnb-echo", "rlnb-tasks"} <= versions.keys()
    assert "" not in versions


def test_a_misspelt_hook_and_one_without_its_mark_are_reported(install: Install) -> None:
    code = f"{HOOK}def rlnb_chek(manifest):\n    return []\n\n\ndef rlnb_panels(run):\n    return []\n"
    install("typing", code)
    with pytest.warns(UserWarning, match="plugin") as caught:
        manager()
    assert [str(warning.message) for warning in caught] == [
        "The plugin 'typing' (rlnb-typing 1.0) implements rlnb_chek, which is not a hook of rlnb, so it is never "
        "called. Did you mean 'rlnb_check'?",
        "The plugin 'typing' (rlnb-typing 1.0) has a function rlnb_panels that is never called. Mark it with "
        "@rlnb.plugin.hookimpl.",
    ]
    assert not of("typing").error
    assert len(of("typing").remarks) == 2


def test_a_hook_of_a_newer_rlnb_may_be_optional(install: Install) -> None:
    install("newer", f"{HOOK[:-1]}(optionalhook=True)\ndef rlnb_future():\n    pass\n")
    assert of("newer").remarks == ()


def test_of_two_packages_with_the_same_plugin_name_the_second_is_left_out(install: Install) -> None:
    install("one", "", entry="same")
    install("two", "1 / 0", entry="same")
    remark = "has the name of another plugin, that of rlnb-two 1.0, which is left out. Uninstall one."
    with pytest.warns(UserWarning, match=rf"^The plugin 'same' \(rlnb-one 1\.0\) {remark}$"):
        assert getattr(manager().get_plugin("same"), "__name__", "") == "rlnb_one"
    assert of("same").remarks == (remark,)


def test_a_second_plugin_of_a_name_is_reported_although_the_first_is_left_out(install: Install) -> None:
    install("one", "1 / 0", entry="same")
    install("two", "", entry="same")
    with pytest.warns(UserWarning, match="plugin") as caught:
        manager()
    assert ["left out: its import" in str(one.message) for one in caught] == [True, False]
    assert len(of("same").remarks) == 1


def test_a_name_that_two_plugins_register_belongs_to_neither(install: Install) -> None:
    install("twin", LIBRARY.format(name="echo"))
    with pytest.warns(UserWarning, match="plugin") as caught:
        assert "echo" not in plugins.libraries()
    assert [str(warning.message) for warning in caught] == [
        f"The {of(one)} has a library named 'echo', as has the {of(other)}. Uninstall one of them. Until then, neither "
        "is used."
        for one, other in (("echo", "twin"), ("twin", "echo"))
    ]
    assert "rsl_rl" in plugins.libraries()
    with pytest.raises(rlnb.NotFoundError, match="No RL library named 'echo'"):
        plugins.library("echo")


@pytest.mark.parametrize(
    ("hook", "item", "name"),
    [
        *(
            ("launchers", f"launchers.LauncherType(name='{name}', factory='a:B')", f"a launcher named '{name}'")
            for name in ("local", "train", "results", "spec", "replay", "get_sweep", "HostedJob")
        ),
        ("libraries", "plugin.Library(name='script', backend='a:B')", "a library named 'script'"),
    ],
)
def test_a_plugin_cannot_take_a_name_of_rlnb_itself(install: Install, hook: str, item: str, name: str) -> None:
    install("usurper", f"{HOOK}def rlnb_{hook}():\n    return [rlnb.{item}]\n")
    with pytest.warns(UserWarning, match="usurper") as caught:
        assert plugins.launcher("local").factory == "rlnb.launch.local:LocalLauncher"
    (text,) = [str(warning.message) for warning in caught]
    assert text == f"The {of('usurper')} registers {name}, which is a name of rlnb's own. Rename it."
    assert plugins.library("script") is plugins.SCRIPT
    assert "script" not in plugins.libraries()


def test_a_plugin_cannot_take_the_place_of_rlnb_by_the_name_of_its_entry_point(
    install: Install, tmp_path: Path
) -> None:
    item = "LauncherType(name='mine', factory='a:B')"
    install("usurper", f"{HOOK}def rlnb_launchers():\n    return [rlnb.{item}]\n", entry="rlnb")
    (points,) = tmp_path.glob("site/*/entry_points.txt")
    points.write_text("[rlnb]\nrlnb = a_usurper\n")  # before rlnb's own in the order of names
    (tmp_path / "site" / "rlnb_usurper.py").rename(tmp_path / "site" / "a_usurper.py")
    with pytest.warns(UserWarning, match="usurper"):
        assert [*plugins.launchers()][:2] == ["local", "injected"]
    assert "mine" not in plugins.launchers()
    assert [plugin.name for plugin in installed() if plugin.remarks] == ["rlnb"]


def test_rlnb_itself_is_not_listed_among_its_plugins() -> None:
    assert "rlnb" not in {plugin.name for plugin in installed()}
    assert "rlnb" not in package_versions()


def test_rlnb_without_its_own_entry_point_says_that_it_has_to_be_installed_again(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [entry for entry in metadata.entry_points(group="rlnb") if entry.value != "rlnb.launch.plugin"]
    monkeypatch.setattr(metadata, "entry_points", lambda group: others)
    install("harmless", f"{HOOK}def rlnb_tasks():\n    return []\n")
    with pytest.warns(UserWarning, match="is left out: it is not installed as a package, .* Install it again"):
        assert "local" not in plugins.launchers()
    assert "slurm" in plugins.launchers()
    assert [plugin.name for plugin in installed() if plugin.error] == ["rlnb"], "the doctor and the list show it"


def test_a_backend_in_a_module_that_does_not_exist_is_reported_before_anything_starts(install: Install) -> None:
    install("lost", LIBRARY.format(name="lost").replace("a:B", "rlnb_lost.backend:B"))
    with pytest.warns(UserWarning, match="plugin") as caught:
        assert "lost" in plugins.libraries()
    remark = "has a library 'lost' whose backend is in 'rlnb_lost.backend', which does not exist."
    assert [str(warning.message) for warning in caught] == [
        f"The plugin 'lost' (rlnb-lost 1.0) {remark} Correct Library.backend."
    ]
    assert [plugin.name for plugin in installed() if plugin.remarks] == ["lost"], "the other backends exist"
    assert not of("lost").error


def by_hand(**hooks: Any) -> type:
    return type("Plugin", (), {name: staticmethod(hookimpl(function)) for name, function in hooks.items()})


@pytest.mark.parametrize(
    ("hooks", "fault"),
    [
        ({"rlnb_libraries": lambda: None}, r"rlnb_libraries\(\) returned None"),
        (
            {"rlnb_libraries": lambda: [Library(name="echo", backend="a:B")]},
            "a library named 'echo' is there",
        ),
        (
            {"rlnb_libraries": lambda: [Library(name="script", backend="a:B")]},
            "a library named 'script' is there",
        ),
        ({"rlnb_tasks": lambda: [rlnb.Task(id="Echo")]}, "a task named 'Echo' is there already"),
        ({"rlnb_tasks": lambda: rlnb.libraries()}, r"rlnb_tasks\(\) raised RlnbError: A hook .* cannot look up"),
        ({"rlnb_check": lambda manifst: []}, "PluginValidationError: "),
    ],
)
def test_a_plugin_that_is_registered_by_hand_and_fails_is_refused(hooks: dict[str, Any], fault: str) -> None:
    pattern = rf"^The plugin 'mine' \(registered by hand\) was not registered: {fault}.*Correct its code\.$"
    with pytest.raises(rlnb.RlnbError, match=pattern):
        register(by_hand(**hooks), "mine")
    assert not manager().has_plugin("mine")
    assert "mine" not in registry().plugins
    assert "echo" in plugins.libraries()


class Methods:
    @hookimpl
    def rlnb_check(self, manifest: object) -> list[object]:
        return []


class Functions:
    @staticmethod
    @hookimpl
    def rlnb_check(manifest: object) -> list[object]:
        return []


def test_a_class_with_methods_is_refused_with_the_advice_to_name_an_instance() -> None:
    with pytest.raises(HookError, match=r"it is the class Methods, whose rlnb_check is a method\. Name an instance"):
        register(Methods, "mine")
    register(Methods(), "an_instance")
    register(Functions, "functions")
    assert {"an_instance", "functions"} <= {plugin.name for plugin in installed()}


def test_a_plugin_that_is_registered_by_hand_is_reported_at_once() -> None:
    with pytest.warns(UserWarning, match="implements rlnb_chek, which is not a hook of rlnb") as caught:
        register(by_hand(rlnb_chek=lambda manifest: []), "mine")
    manager().unregister(name="mine")
    (warning,) = caught
    assert warning.filename == __file__


def test_a_plugin_that_is_refused_is_not_reported_later() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"'mine' .* was not registered"):
        register(by_hand(rlnb_chek=lambda manifest: [], rlnb_tasks=lambda: 3), "mine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager()


def test_a_name_can_be_registered_once_by_hand() -> None:
    register(by_hand(), "mine")
    try:
        with pytest.raises(rlnb.RlnbError, match=r"'mine' .* its name is in use\. Use another name\."):
            register(by_hand(), "mine")
        assert "mine" in [plugin.name for plugin in installed()]
    finally:
        manager().unregister(name="mine")
    assert "mine" not in [plugin.name for plugin in installed()]
