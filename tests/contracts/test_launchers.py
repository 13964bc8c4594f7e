"""rlnb's own launchers implement their protocol."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

import rlnb
from rlnb.launchers import Launcher


def members(protocol: type) -> set[str]:
    """Return the names of a protocol's attributes and methods."""
    methods = {name for name in vars(protocol) if not name.startswith("_")}
    return methods | set(inspect.get_annotations(protocol))


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, kind and default of each parameter."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(
    "launcher", [rlnb.local(), rlnb.injected(nodes=2, nproc_per_node=1)], ids=["local", "injected"]
)
def test_the_launchers_of_rlnb_implement_the_protocol(launcher: Launcher) -> None:
    missing = {name for name in members(Launcher) if not hasattr(launcher, name)}
    assert not missing
    for name in ("check", "submit", "alive", "cancel"):
        argument_names = [name for name, *_ in parameters(getattr(type(launcher), name))]
        assert argument_names == [name for name, *_ in parameters(getattr(Launcher, name))]
    assert json.loads(json.dumps(dict(launcher.settings))) == dict(launcher.settings)
