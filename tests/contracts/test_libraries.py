"""rlnb's own context implements its protocol."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.contracts.libraries import TrainContext
from rlnb.records.layout import JobDir, RunDir
from rlnb.records.options import TrainOptions
from rlnb.worker.jobs.context import Context


def members(protocol: type) -> set[str]:
    """Return the names of a protocol's attributes and methods."""
    methods = {name for name in vars(protocol) if not name.startswith("_")}
    return methods | set(inspect.get_annotations(protocol))


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, kind and default of each parameter."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    manifest = rlnb.Manifest(run_id="r", created="", task=rlnb.Task(id="Echo"), library="echo", agent={"peak": 3})
    return Context(RunDir(tmp_path), JobDir(tmp_path / "jobs" / "0-train"), manifest, TrainOptions(trust=True))


def test_the_context_has_every_member_of_its_protocol(context: Context) -> None:
    missing = {name for name in members(TrainContext) if not hasattr(context, name)}
    assert not missing
    assert (context.trust, context.agent, context.checkpoint, context.init_from) == (True, {"peak": 3}, None, None)


@pytest.mark.parametrize("name", ["policy", "resumed", "started", "pool"])
def test_the_methods_of_the_context_have_the_signatures_of_the_protocol(name: str) -> None:
    assert parameters(getattr(Context, name)) == parameters(getattr(TrainContext, name))
