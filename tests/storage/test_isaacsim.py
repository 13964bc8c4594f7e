"""The terms of Isaac Sim: the rule of its wheels, on a package that imitates their layout and cannot be imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlnb.machine.packages import ACCEPT_EULA, isaacsim_terms


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
