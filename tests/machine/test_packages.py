"""The line that installs a package, Isaac Sim and its terms, and the browser that prints pages."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from rlnb.machine import packages
from rlnb.machine.packages import ACCEPT_EULA, BROWSERS, find_browser, isaacsim_terms


@pytest.mark.parametrize("name", BROWSERS)
def test_chrome_and_chromium_are_found_under_every_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_browser() is None
    (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / name).chmod(0o755)
    assert find_browser() == str(tmp_path / name)


# -- installation ----------------------------------------------------------------------------------------------------


class Distribution:
    """An installed package, as ``importlib.metadata`` shows it."""

    def __init__(self, record: object) -> None:
        self._text = json.dumps(record) if record is not None else None

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._text


@pytest.fixture
def came_from(monkeypatch: pytest.MonkeyPatch):
    def source(record: object) -> None:
        monkeypatch.setattr(metadata, "distribution", lambda name: Distribution(record))

    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    return source


def test_a_wheel_names_its_folder(came_from) -> None:
    came_from({"url": "file:///data/my%20wheels/rlnb-1.0-py3-none-any.whl", "archive_info": {}})
    assert packages.install_line("rlnb[report]") == (
        "cd '/data/my wheels' && /env/bin/python -m pip install --upgrade 'pip>=26.1' && "
        "/env/bin/python -m pip install --constraint constraints.txt 'rlnb[report]'"
    )
    assert packages.install_line("rlnb-tasks", python="/lab/isaaclab.sh -p") == (
        "cd '/data/my wheels' && /lab/isaaclab.sh -p -m pip install --upgrade 'pip>=26.1' && "
        "/lab/isaaclab.sh -p -m pip install --constraint constraints.txt rlnb-tasks"
    )


def test_beside_isaac_sim_the_constraints_are_those_that_keep_its_packages(
    came_from, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came_from({"url": "file:///wheels/rlnb-1.0-py3-none-any.whl", "archive_info": {}})
    elsewhere = packages.install_line("rlnb", python="/lab/python", isaacsim=True)
    assert elsewhere.endswith("/lab/python -m pip install --constraint constraints-isaacsim.txt rlnb")
    assert "constraints-isaacsim" not in packages.install_line("rlnb")
    (tmp_path / "isaacsim").mkdir()
    (tmp_path / "isaacsim" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert packages.install_line("rlnb").endswith("--constraint constraints-isaacsim.txt rlnb")
    assert "constraints-isaacsim" not in packages.install_line("rlnb", python="/lab/python")


def test_a_checkout_is_installed_in_place_here_and_as_wheels_elsewhere(came_from) -> None:
    came_from({"url": "file:///src/rlnb", "dir_info": {"editable": True}})
    assert packages.install_line("rlnb[report]", "rlnb-tasks[robots]", "rlnb-jupyterlab") == (
        "cd /src/rlnb && /env/bin/python -m pip install --constraint constraints.txt "
        "--editable '.[report]' --editable 'plugins/rlnb-tasks[robots]' --editable extensions/rlnb-jupyterlab"
    )
    assert packages.install_line("rlnb[isaaclab]", python="other") == (
        "cd /src/rlnb && make wheels && cd dist && other -m pip install --upgrade 'pip>=26.1' && "
        "other -m pip install --constraint constraints.txt 'rlnb[isaaclab]'"
    )


def test_a_package_from_an_index_comes_from_that_index_again(came_from) -> None:
    came_from(None)
    assert packages.install_line("rlnb[report]") == "/env/bin/python -m pip install 'rlnb[report]'"


def test_a_package_in_place_gets_the_packages_of_rlnb_from_where_rlnb_came_from(came_from) -> None:
    package = "/env/bin/python -m pip install --constraint constraints.txt --editable '/my lib[test]'"
    came_from({"url": "file:///wheels/rlnb-1.0-py3-none-any.whl", "archive_info": {}})
    upgrade = "/env/bin/python -m pip install --upgrade 'pip>=26.1'"
    assert packages.editable_line(Path("/my lib"), "test") == f"cd /wheels && {upgrade} && {package}"
    came_from({"url": "file:///src/rlnb", "dir_info": {"editable": True}})
    assert packages.editable_line(Path("/my lib"), "test") == f"cd /src/rlnb && {package}"
    came_from(None)
    assert packages.editable_line(Path("lib"), "test").endswith(f"install --editable '{Path.cwd()}/lib[test]'")


def test_this_installation_knows_where_it_came_from() -> None:
    folder, editable = packages.origin()
    assert folder is not None
    assert (folder / "rlnb" / "machine" / "packages.py").is_file() == editable
    assert Path(folder).is_dir()


def test_an_installed_package_is_not_missing() -> None:
    assert packages.unmet(("pluggy>=1", "numpy")) == ()


def test_a_missing_package_or_version_is_named_with_the_installed_version() -> None:
    assert packages.unmet(("pluggy<1", "no-such-package>=2")) == (
        f"pluggy<1 (installed: {metadata.version('pluggy')})",
        "no-such-package>=2 (not installed)",
    )


# -- isaacsim --------------------------------------------------------------------------------------------------------


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kit's folder in an installed Isaac Sim whose terms are not accepted."""
    (tmp_path / "isaacsim" / "kit" / "extscore").mkdir(parents=True)
    (tmp_path / "isaacsim" / "__init__.py").write_text("raise EOFError('Do you accept the EULA? (Yes/No): ')")
    monkeypatch.delitem(sys.modules, "isaacsim", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(ACCEPT_EULA, raising=False)
    return tmp_path / "isaacsim" / "kit"


def test_terms_that_were_not_accepted_are_named_with_the_variable_and_nothing_is_accepted(kit: Path) -> None:
    text = isaacsim_terms()
    assert text.startswith("The terms of Isaac Sim are not accepted. Read them at https://docs.omniverse.nvidia.com/")
    assert text.endswith(f"If you accept them, set {ACCEPT_EULA}=YES.")
    assert not (kit / "EULA_ACCEPTED").exists()
    assert isaacsim_terms() == text


@pytest.mark.parametrize(("value", "accepted"), [("YES", True), ("y", True), ("1", True), ("no", False), ("", False)])
def test_the_variable_counts_as_in_kit(kit: Path, value: str, accepted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCEPT_EULA, value)
    assert (isaacsim_terms() == "") is accepted


@pytest.mark.parametrize(("text", "accepted"), [("yes", True), (" Y \nno", True), ("no\nyes", False), ("", False)])
def test_an_earlier_answer_counts_as_in_kit(kit: Path, text: str, accepted: bool) -> None:
    (kit / "EULA_ACCEPTED").write_text(text)
    assert (isaacsim_terms() == "") is accepted


def test_the_binary_distribution_does_not_ask(kit: Path) -> None:
    (kit / "extscore").rmdir()
    assert isaacsim_terms() == ""


def test_without_isaac_sim_there_are_no_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    monkeypatch.delitem(sys.modules, "isaacsim", raising=False)
    assert isaacsim_terms() == ""
