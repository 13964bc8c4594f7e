"""A plugin's name, and what its import does wrong."""

from __future__ import annotations

import importlib
import logging
import re
import sys
import threading
import types
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from rlnb.hooks import plugin as plugins
from rlnb.hooks.plugin import Plugin, cause_of, heavy_imports, load_module, reason_of

ENTRY = metadata.EntryPoint(name="x", value="rlnb_try", group="rlnb")


def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> Plugin:
    """Return the plugin of a module with this code, after its import."""
    (tmp_path / "rlnb_try.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rlnb_try", raising=False)
    plugin = Plugin(name="x", distribution="rlnb-x", version="1.0")
    module = load_module(ENTRY, plugin)
    assert (module is None) == bool(plugin.error)
    return plugin


def test_a_plugin_is_named_with_its_distribution_and_version() -> None:
    assert str(Plugin(name="x", distribution="rlnb-x", version="1.0")) == "plugin 'x' (rlnb-x 1.0)"
    assert str(Plugin(name="x")) == "plugin 'x' (registered by hand)"


@pytest.mark.parametrize(
    ("code", "error", "fix"),
    [
        (
            "1 / 0",
            "its import raised ZeroDivisionError: division by zero ({file}, line 1)",
            "Update or uninstall rlnb-x.",
        ),
        (
            "def f(:",
            "its import raised SyntaxError: invalid syntax (rlnb_try.py, line 1)",
            "Update or uninstall rlnb-x.",
        ),
        ("import sys\nsys.exit(3)", "its import called sys.exit(3) ({file}, line 2)", "Update or uninstall rlnb-x."),
        (
            "import no_such.thing",
            "its import raised ModuleNotFoundError: No module named 'no_such' ({file}, line 1)",
            "Install the package of 'no_such', or uninstall rlnb-x.",
        ),
        (
            "from json import no_such",
            "its import raised ImportError: cannot import name 'no_such' from 'json'",
            "Update or uninstall rlnb-x.",
        ),
        ("", "", ""),
    ],
)
def test_the_error_of_an_import_has_its_place_and_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, error: str, fix: str
) -> None:
    plugin = loaded(tmp_path, monkeypatch, code)
    assert plugin.error.startswith(error.format(file=tmp_path / "rlnb_try.py"))
    assert plugin.fix == fix


def test_an_exception_that_is_no_ordinary_one_leaves_the_plugin_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = loaded(tmp_path, monkeypatch, "class Skipped(BaseException): pass\nraise Skipped('no GPU')")
    assert "its import raised" in plugin.error
    assert "no GPU" in plugin.error


def test_an_import_that_takes_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlnb.hooks.plugin.SLOW_S", 0.05)
    texts: list[str] = []
    seen = threading.Event()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())
            seen.set()

    told, log = Told(), logging.getLogger("rlnb.hooks.plugin")
    log.addHandler(told)
    try:
        monkeypatch.setattr(sys, "rlnb_seen", seen, raising=False)
        loaded(tmp_path, monkeypatch, "import sys\nassert sys.rlnb_seen.wait(60)")
    finally:
        log.removeHandler(told)
    assert "is still being imported after 0 s" in texts[0]


def test_an_interrupt_of_the_user_is_no_fault_of_the_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        loaded(tmp_path, monkeypatch, "raise KeyboardInterrupt")


@pytest.mark.parametrize("cause", ["raise Mute", "raise ModuleNotFoundError(name='without_spec')"])
def test_an_exception_that_is_hard_to_describe_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    without_spec = types.ModuleType("without_spec")
    monkeypatch.setitem(sys.modules, "without_spec", without_spec)
    mute = "class Mute(Exception):\n    def __str__(self):\n        raise ValueError\n"
    plugin = loaded(tmp_path, monkeypatch, f"{mute}{cause}")
    assert re.match(r"its import raised (Mute: <.* failed>|ModuleNotFoundError) \(.*, line 4\)", plugin.error)
    assert plugin.fix == "Update or uninstall rlnb-x."


def test_a_light_half_that_imports_a_heavy_module_works_and_gets_a_remark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ponderous.py").write_text("import time\ntime.sleep(0.2)\n")
    monkeypatch.delitem(sys.modules, "ponderous", raising=False)
    monkeypatch.setattr(plugins, "HEAVY", ("ponderous", "no_such_module"))
    guarded = "try:\n    import no_such_module\nexcept ImportError:\n    pass\n"
    assert loaded(tmp_path, monkeypatch, guarded).remarks == ()
    plugin = loaded(tmp_path, monkeypatch, f"{guarded}import ponderous")
    assert plugin.error == ""
    (remark,) = plugin.remarks
    match = re.match(r"imports ponderous on load, which takes (\d+\.\d) s in each process\. ", remark)
    assert match is not None
    assert float(match[1]) >= 0.2
    assert remark.endswith(" Import ponderous inside the functions that need it.")


def test_the_heavy_imports_of_other_threads_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weighty.py").write_text("")
    monkeypatch.delitem(sys.modules, "weighty", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "HEAVY", ("weighty",))
    with heavy_imports() as names:
        thread = threading.Thread(target=__import__, args=("weighty",))
        thread.start()
        thread.join()
    assert "weighty" in sys.modules
    assert names == []
    assert not any(isinstance(finder, plugins._Watch) for finder in sys.meta_path)


def test_a_heavy_import_that_another_finder_searches_again_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Again:
        """Asks all other finders, as the finder of a warm simulator does."""

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
            return next(filter(None, specs), None)

    (tmp_path / "massive.py").write_text("")
    monkeypatch.delitem(sys.modules, "massive", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "HEAVY", ("massive",))
    monkeypatch.setattr(sys, "meta_path", [Again(), *sys.meta_path])
    with heavy_imports() as names:
        importlib.import_module("massive")
    assert names == ["massive"]


def test_a_print_at_import_goes_to_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded(tmp_path, monkeypatch, "print('hello')")
    assert capsys.readouterr() == ("", "hello\n")


def test_the_cause_without_a_frame_of_the_plugin_has_no_place() -> None:
    assert cause_of(ValueError("no")) == "raised ValueError: no"
    assert cause_of(ValueError()) == "raised ValueError"
    assert cause_of(SystemExit()) == "called sys.exit(None)"


LAZY = """
import importlib

def __getattr__(name):
    if name == "Runner":
        return importlib.import_module("lazy_x.runner").Runner
    raise AttributeError(f"No lazy_x attribute {name}")
"""
"""A package that imports its names on their first use, as those of Isaac Lab do."""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="an ImportError does not name what was imported")
def test_the_reason_is_named_that_a_lazy_module_drops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lazy_x"
    package.mkdir()
    (package / "__init__.py").write_text(LAZY)
    (package / "runner.py").write_text("import torch_x\n")
    (tmp_path / "torch_x.py").write_text("import json\njson.no_such\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as caught:
        exec("from lazy_x import Runner")
    assert "no_such" not in str(caught.value)
    place = f"({tmp_path / 'torch_x.py'}, line 2)"
    assert reason_of(caught.value) == f", because of AttributeError: module 'json' has no attribute 'no_such' {place}"
    with pytest.raises(ImportError) as caught:
        exec("from lazy_x import Walker")
    assert reason_of(caught.value) == "", "it has no such name"


def test_the_first_exception_of_a_chain_is_the_reason() -> None:
    def chain() -> None:
        try:
            try:
                raise OSError("no file")
            except OSError as exc:
                raise KeyError("x") from exc
        except KeyError:
            raise ValueError("wrong")  # noqa: B904

    with pytest.raises(ValueError, match="wrong") as caught:
        chain()
    assert reason_of(caught.value).startswith(f", because of OSError: no file ({__file__}, line ")
    assert reason_of(OSError("alone")) == ""
    one, other = ValueError(1), KeyError(2)
    one.__cause__, other.__context__ = other, one
    assert reason_of(one).startswith(", because of KeyError"), "a circle ends"
    first = ValueError("hidden")
    first.__context__, first.__suppress_context__ = other, True
    assert reason_of(first) == "", "raised from None"
