"""All checks of the doctor together: concurrent, and within their time limit."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rlnb.doctor import doctor
from rlnb.doctor.finding import Finding
from rlnb.hooks.plugin import Plugin

LIMIT_S = 5.0
"""Seconds promised for all checks; an idle machine takes 1 s."""
WAIT_S = 20.0
"""For one answer of a busy machine."""


@pytest.mark.parametrize(
    ("version", "level"),
    [((3, 10, 9), "fault"), ((3, 11, 0), "ok"), ((3, 12, 1), "ok"), ((3, 13, 2), "ok"), ((3, 14, 0), "fault")],
)
def test_the_kernel_runs_on_python_3_11_to_3_13(version: tuple[int, ...], level: str) -> None:
    assert doctor.check_python(version).level == level


def test_a_broken_plugin_is_a_fault_that_names_its_package() -> None:
    fine = Plugin(name="a", distribution="rlnb-a", version="1")
    broken = Plugin(
        name="b", distribution="rlnb-b", version="2", error="no torch", fix="Install torch.", remarks=("x.",)
    )
    odd = Plugin(name="c", distribution="rlnb-c", version="3", remarks=("implements rlnb_chekc.", "is slow."))
    finding = doctor.check_plugins([fine, broken])
    assert (finding.level, finding.fix) == ("fault", "Install torch.")
    assert finding.text.endswith("rlnb-a 1; rlnb-b 2 is left out: no torch; x")
    assert doctor.check_plugins([fine]).level == "ok"
    remark = doctor.check_plugins([fine, odd])
    assert (remark.level, remark.fix) == ("warning", "Update or uninstall rlnb-c.")
    assert remark.text.endswith("rlnb-c 3 implements rlnb_chekc; is slow")
    assert doctor.check_plugins([]).level == "fault"


def test_a_check_that_hangs_or_breaks_does_not_affect_the_others() -> None:
    def broken() -> list[Finding]:
        raise ZeroDivisionError("of all things")

    def hanging() -> list[Finding]:
        time.sleep(60)
        return []

    start = time.monotonic()
    checks = {"a": broken, "b": hanging, "c": lambda: [doctor.ok("c", "fine")]}
    findings = doctor._all_within(checks, 0.3)
    assert time.monotonic() - start < WAIT_S
    assert [(finding.name, finding.level) for finding in findings] == [("a", "warning"), ("b", "warning"), ("c", "ok")]
    assert "ZeroDivisionError: of all things" in findings[0].text
    assert "no answer in 0.3 s" in findings[1].text


def test_all_checks_take_less_than_five_seconds(tmp_path: Path) -> None:
    start = time.monotonic()
    findings = doctor.examine(root=tmp_path)
    assert time.monotonic() - start < LIMIT_S
    names = [finding.name for finding in findings]
    assert names[:3] == ["Python", "rlnb", "worker"]
    assert {"NVIDIA driver", "CPUs", "memory", "disk", "run folder", "asset root", "Jupyter", "hosted"} <= set(names)
    assert all(finding.fix for finding in findings if finding.level == "fault")
