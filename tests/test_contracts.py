"""rlnb's own context and launchers implement the protocols in ``rlnb.contracts``."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb import contracts
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
    missing = {name for name in members(contracts.TrainContext) if not hasattr(context, name)}
    assert not missing
    assert (context.trust, context.agent, context.checkpoint, context.init_from) == (True, {"peak": 3}, None, None)


@pytest.mark.parametrize("name", ["resumed", "started", "pool"])
def test_the_methods_of_the_context_have_the_signatures_of_the_protocol(name: str) -> None:
    assert parameters(getattr(Context, name)) == parameters(getattr(contracts.TrainContext, name))


@pytest.mark.parametrize(
    "launcher", [rlnb.local(), rlnb.injected(nodes=2, nproc_per_node=1)], ids=["local", "injected"]
)
def test_the_launchers_of_rlnb_implement_the_protocol(launcher: rlnb.Launcher) -> None:
    missing = {name for name in members(contracts.Launcher) if not hasattr(launcher, name)}
    assert not missing
    for name in ("check", "submit", "alive", "cancel"):
        argument_names = [name for name, *_ in parameters(getattr(type(launcher), name))]
        assert argument_names == [name for name, *_ in parameters(getattr(contracts.Launcher, name))]
    assert json.loads(json.dumps(dict(launcher.settings))) == dict(launcher.settings)
