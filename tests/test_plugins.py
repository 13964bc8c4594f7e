"""Look-ups by name: what is there, and the error for a name that does not exist."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rlnb
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager
from rlnb.launchers import DetachedLauncher, LauncherType, Resources
from rlnb.plugin import Library, Manifest, Problem, Role, hookimpl
from rlnb.spec import METRICS


def test_the_error_for_an_unknown_library_lists_the_installed_ones() -> None:
    with pytest.raises(rlnb.NotFoundError) as caught:
        plugins.library("ecko")
    assert str(caught.value).startswith("No RL library named 'ecko'. Installed: echo")
    assert str(caught.value).endswith("Did you mean 'echo'?")


def test_the_error_for_an_unknown_launcher_lists_the_installed_ones() -> None:
    with pytest.raises(rlnb.NotFoundError) as caught:
        plugins.launcher("locale")
    assert str(caught.value).startswith("No launcher named 'locale'. Installed: ")
    assert str(caught.value).endswith("Did you mean 'local'?")


def test_without_a_close_name_there_is_no_suggestion() -> None:
    with pytest.raises(rlnb.NotFoundError) as caught:
        plugins.library("zzzzzz")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("reference", ["no_such_package:Thing", "json:no_such_function", "json"])
def test_the_error_for_a_broken_reference_names_the_reference_and_the_interpreter(reference: str) -> None:
    with pytest.raises(rlnb.RlnbError) as caught:
        plugins.load(reference)
    assert repr(reference) in str(caught.value)
    assert sys.executable in str(caught.value)
    assert caught.value.__cause__ is not None


def test_a_backend_that_cannot_be_loaded_is_named_with_its_library_and_its_plugin() -> None:
    echo = plugins.library("echo")
    assert type(plugins.new_backend(echo)).__name__ == "Echo"
    lost = dataclasses.replace(echo, name="lost", backend="rlnb_echo.backend:Lost")
    rlnb.register(type("P", (), {"rlnb_libraries": staticmethod(hookimpl(lambda: [lost]))}), "finder")
    try:
        with pytest.raises(rlnb.RlnbError) as caught:
            plugins.new_backend(lost)
    finally:
        manager().unregister(name="finder")
    text = "The library 'lost' of the plugin 'finder' (registered by hand) has no backend: 'rlnb_echo.backend:Lost' "
    assert str(caught.value).startswith(f"{text}cannot be loaded by {sys.executable}: ")
    assert str(caught.value).endswith(". Correct its code.")


CHAIN = """try:
    1 / 0
except ZeroDivisionError as exc:
    raise {}("no") from exc"""


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("raise OSError('libfoo.so: cannot open')", "raised OSError: libfoo.so: cannot open"),
        ("def broken(:", "raised SyntaxError"),
        ("raise SystemExit(3)", "called sys.exit(3)"),
        (CHAIN.format("ImportError"), ": no, because of ZeroDivisionError: division by zero ("),
        (CHAIN.format("ValueError"), "broken_half.py, line 4), because of ZeroDivisionError: division by zero ("),
    ],
)
def test_a_module_of_a_plugin_that_cannot_be_imported_is_named_with_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, fault: str
) -> None:
    (tmp_path / "broken_half.py").write_text(f"{code}\n")
    monkeypatch.syspath_prepend(tmp_path)
    library = Library(name="broken", backend="broken_half:A", distributed=True, roles="broken_half:roles")
    for call in (lambda: plugins.new_backend(library), lambda: plugins.roles_of(library, 2, {})):
        with pytest.raises(rlnb.RlnbError) as caught:
            call()
        assert "of the plugin 'broken'" in str(caught.value)
        assert fault in str(caught.value)


@pytest.mark.parametrize(("error", "named"), [(ValueError("no"), True), (rlnb.RlnbError("Use skrl 2."), False)])
def test_a_backend_that_cannot_be_made_is_named_unless_it_has_words_of_its_own(
    monkeypatch: pytest.MonkeyPatch, error: Exception, named: bool
) -> None:
    class Fails:
        def __init__(self) -> None:
            raise error

    monkeypatch.setattr(plugins, "load", lambda _: Fails)
    with pytest.raises(rlnb.RlnbError) as caught:
        plugins.new_backend(plugins.library("echo"))
    assert ("of the plugin 'echo' (rlnb-echo" in str(caught.value)) == named
    assert str(error) in str(caught.value)


def test_a_reference_reaches_into_classes() -> None:
    assert plugins.load("pathlib:Path.cwd")() == Path.cwd()


class Strict:
    """A launcher whose constructor fails for a string."""

    def __init__(self, *, nodes: int = 1) -> None:
        self.nodes = nodes + 0


@pytest.fixture
def strict() -> Iterator[None]:
    class Bringing:
        @staticmethod
        @hookimpl
        def rlnb_launchers() -> list[LauncherType]:
            return [LauncherType(name="strict", factory=f"{__name__}:Strict")]

    rlnb.register(Bringing, "strict")
    yield
    manager().unregister(name="strict")


def test_a_library_may_have_metric_names_of_its_own() -> None:
    class Bringing:
        @staticmethod
        @hookimpl
        def rlnb_libraries() -> list[Library]:
            same, other = {"kl": "divergence, in nats"}, {"kl": "divergence, in bits", "tokens": "tokens"}
            meanings = {"one": same, "two": same, "three": {}, "four": other}
            return [Library(name=name, backend="a:B", metric_names=meanings[name]) for name in meanings]

    assert plugins.metrics() == METRICS
    rlnb.register(Bringing, "bringing")
    try:
        own = {"kl": "four: divergence, in bits; one: divergence, in nats", "tokens": "tokens"}
        assert plugins.metrics() == {**METRICS, **own}
    finally:
        manager().unregister(name="bringing")


def test_a_launcher_is_made_from_settings_and_from_a_manifest() -> None:
    launcher = plugins.make_launcher("local", {"max_running": 3})
    assert launcher.settings == {"max_running": 3, "walltime_s": None}
    manifest = Manifest(
        run_id="r",
        created="2026-01-01T00:00:00+00:00",
        task=rlnb.Task(id="T"),
        library="echo",
        launcher_settings=launcher.settings,
    )
    assert plugins.launcher_of(manifest).settings == launcher.settings


def test_every_unknown_setting_of_a_launcher_is_a_problem() -> None:
    with pytest.raises(rlnb.CheckError) as caught:
        plugins.make_launcher("injected", {"node": 2, "gpus": 1})
    assert [problem.what for problem in caught.value.problems] == [
        "'node' is not a setting of injected. Did you mean 'nodes'?",
        "'gpus' is not a setting of injected.",
    ]
    with pytest.raises(rlnb.CheckError, match=r"'locale' is not a launcher\. Did you mean 'local'"):
        plugins.make_launcher("locale", {})


def test_an_exception_of_a_launcher_becomes_a_problem_unless_it_is_an_rlnb_error(strict: None) -> None:
    with pytest.raises(rlnb.CheckError, match=r"strict\(nodes='two'\) could not be made: TypeError: ") as caught:
        plugins.make_launcher("strict", {"nodes": "two"})
    assert caught.value.problems[0].fix == "Use the settings of help(rlnb.strict)."
    with pytest.raises(rlnb.RlnbError, match=r"^max_running=0 is not a positive whole number"):
        plugins.make_launcher("local", {"max_running": 0})


def test_a_script_is_a_library_without_a_plugin() -> None:
    assert plugins.library("script") is plugins.SCRIPT
    assert "script" not in plugins.libraries()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "rlnb_plain"
    folder.mkdir()
    (folder / "__init__.py").write_text("def ppo():\n    return {'gamma': 0.5}\n")
    (folder / "ppo.yaml").write_text("learning_rate: 3e-4\nactor: {hidden_dims: [64, 64]}\n")
    (folder / "broken.yaml").write_text("- 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder.name


def test_a_generic_config_is_a_function_or_a_file(package: str) -> None:
    default = plugins.agent_config
    assert default(f"{package}:ppo") == {"gamma": 0.5}
    assert default(f"{package}:ppo.yaml") == {"learning_rate": 3e-4, "actor": {"hidden_dims": [64, 64]}}
    with pytest.raises(rlnb.RlnbError, match="not a mapping"):
        default(f"{package}:broken.yaml")
    with pytest.raises(rlnb.RlnbError, match=r"none.yaml cannot be read"):
        default(f"{package}:none.yaml")
    with pytest.raises(rlnb.RlnbError, match=r"'nowhere:ppo\.yaml': there is no package 'nowhere'"):
        default("nowhere:ppo.yaml")


LEARNER, ACTOR = Role(name="learner", env=False), Role(name="actor", cpu=True)
WITH_ROLES = Library(name="mine", backend="m:B", distributed=True, roles="their_roles:roles")


@pytest.fixture
def roles(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object], None]]:
    """Return a function that sets the roles function of a registered library."""

    class Bringing:
        @staticmethod
        @hookimpl
        def rlnb_libraries() -> list[Library]:
            return [WITH_ROLES]

    module = types.ModuleType("their_roles")
    monkeypatch.setitem(sys.modules, "their_roles", module)
    rlnb.register(Bringing, name="with-roles")
    yield lambda function: setattr(module, "roles", function)
    manager().unregister(Bringing)


def test_each_rank_gets_a_role_by_the_number_of_ranks_and_the_agent_values(roles: Callable[[object], None]) -> None:
    roles(lambda world_size, agent: [LEARNER] * agent.get("learners", 1) + [ACTOR] * (world_size - 1))
    assert plugins.roles_of(WITH_ROLES, 3, {}) == (LEARNER, ACTOR, ACTOR)
    assert plugins.roles_of(WITH_ROLES, 1, {"+learners": 1}) == (LEARNER,)
    assert plugins.roles_of(dataclasses.replace(WITH_ROLES, roles=""), 3, {}) == ()


def test_the_ranks_on_a_gpu_are_those_whose_role_allows_it(roles: Callable[[object], None]) -> None:
    roles(lambda world_size, agent: [LEARNER, *[ACTOR] * (world_size - 1)])
    resources = Resources(nodes=2, nproc_per_node=3)
    manifest = Manifest(run_id="r", created="", task=rlnb.Task(id="T"), library="mine", resources=resources)
    assert plugins.gpu_ranks(manifest) == 1, "the first node has a learner, and the second has none"
    assert plugins.gpu_ranks(dataclasses.replace(manifest, library="echo")) == 3
    assert plugins.gpu_ranks(dataclasses.replace(manifest, library="gone")) == 3
    assert DetachedLauncher.gpu_ranks(manifest) == 1
    roles(lambda world_size, agent: [LEARNER])
    assert DetachedLauncher.gpu_ranks(manifest) == 3, "roles that do not fit are a problem of their own"


def leave(world_size: int, agent: object) -> list[Role]:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (lambda world_size, agent: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (leave, "called sys.exit(3)"),
        (lambda world_size, agent: None, "raised TypeError"),
        (lambda world_size, agent: ["learner"], "returned a list with 'learner', which is not an rlnb.plugin.Role"),
        (lambda world_size, agent: [LEARNER], "returned 1 roles for 2 ranks"),
        (lambda world_size, agent: [Role(name="a b")] * 2, "returned a Role whose name 'a b' has other"),
        (
            lambda world_size, agent: [Role(name="a", env=1)] * 2,
            "returned a Role in which env=1 is not bool",
        ),
        (lambda world_size, agent: [ACTOR, Role(name="actor")], "two different roles of the name 'actor'"),
    ],
)
def test_a_roles_function_that_fails_is_named_with_its_plugin(
    roles: Callable[[object], None], function: object, fault: str
) -> None:
    roles(function)
    with pytest.raises(rlnb.RlnbError) as caught:
        plugins.roles_of(WITH_ROLES, 2, {})
    assert "The roles function 'their_roles:roles' of the plugin 'with-roles' (registered by hand)" in str(caught.value)
    assert fault in str(caught.value)


def test_a_roles_function_that_does_not_exist_is_named_with_its_plugin(roles: Callable[[object], None]) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"plugin 'with-roles' .*'their_roles:roles' cannot be loaded"):
        plugins.roles_of(WITH_ROLES, 2, {})


def test_a_plugin_refuses_a_number_of_ranks_in_its_own_words(roles: Callable[[object], None]) -> None:
    def refuse(world_size: int, agent: object) -> list[Role]:
        raise rlnb.RlnbError(f"{world_size} ranks are too few.")

    roles(refuse)
    with pytest.raises(rlnb.RlnbError, match=r"^2 ranks are too few\.$"):
        plugins.roles_of(WITH_ROLES, 2, {})


def test_the_owner_of_a_library_is_the_plugin_with_a_library_of_its_name() -> None:
    echo = plugins.library("echo")
    for library in (echo, dataclasses.replace(echo, requires=())):
        assert plugins.owner_of(library).distribution == "rlnb-echo"
    assert str(plugins.owner_of(dataclasses.replace(echo, name="gone"))) == "plugin 'gone' (registered by hand)"


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (lambda values, usual, num_envs: 1 / 0, "division by zero"),
        (lambda values, usual, num_envs: ["minibatches=4"], "which is not an rlnb.plugin.Problem"),
        (lambda values, usual, num_envs: None, "TypeError"),
        (lambda values: [], "TypeError"),
    ],
    ids=["raises", "returns a text", "returns None", "takes other arguments"],
)
def test_a_sizes_function_that_fails_is_named_with_its_plugin(
    roles: Callable[[object], None], function: object, fault: str
) -> None:
    roles(function)
    library = dataclasses.replace(WITH_ROLES, sizes="their_roles:roles", roles="")
    with pytest.raises(rlnb.RlnbError, match=fault) as caught:
        plugins.size_problems(library, {}, {}, 2)
    assert "The sizes function 'their_roles:roles' of the plugin" in str(caught.value)


def test_a_size_below_1_is_refused_and_further_problems_are_those_after_its_fix(
    roles: Callable[[object], None],
) -> None:
    roles(lambda values, usual, num_envs: [Problem(what=f"{values} {num_envs}", fix="")])
    positive = {"steps": None, "minibatches": 1}
    library = dataclasses.replace(WITH_ROLES, sizes="their_roles:roles", roles="", positive=positive)
    usual = {"steps": 16, "minibatches": 4}
    first, second, rest = plugins.size_problems(library, {"steps": 0, "minibatches": -1}, usual, 2)
    assert (first.what, first.fix) == ("steps=0 is not a positive number.", "Use steps=16.")
    assert second.fix == "Use minibatches=1."
    assert rest.what == "{'steps': 16, 'minibatches': 1} 2"
