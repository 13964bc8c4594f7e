"""The result of one check."""

from __future__ import annotations

import dataclasses

import pytest

from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.storage.serial import from_json, to_json


def test_each_level_has_a_function_and_only_a_fault_needs_a_fix() -> None:
    assert (ok("a", "b").level, warning("a", "b").level, fault("a", "b", "c").level) == ("ok", "warning", "fault")
    with pytest.raises(TypeError, match="fix"):
        fault("a", "b")  # type: ignore[call-arg]


def test_a_finding_converts_to_json_and_back_and_cannot_be_changed() -> None:
    finding = warning("disk", "1.0 GiB free", "Free some space.")
    assert to_json(finding) == {"name": "disk", "level": "warning", "text": "1.0 GiB free", "fix": "Free some space."}
    assert from_json(Finding, to_json(finding)) == finding
    with pytest.raises(dataclasses.FrozenInstanceError):
        finding.level = "ok"  # type: ignore[misc]
