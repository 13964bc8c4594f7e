"""The descriptions that plugins register are immutable, and need no optional value."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rlnb.launchers import LauncherType, QueueTable
from rlnb.plugin import AssetPack, Panel

DESCRIPTIONS = [
    LauncherType(name="pod", factory="my_plugin:Pod"),
    QueueTable(title="jobs", argv=("squeue",)),
    AssetPack(name="arms", version="1", build="my_plugin:build", files={"arms/a.usda": "Apache-2.0"}),
    Panel(title="Gradient", figure=dict),
]


@pytest.mark.parametrize("description", DESCRIPTIONS, ids=lambda description: type(description).__name__)
def test_a_description_is_immutable(description: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(description, dataclasses.fields(description)[0].name, "other")
