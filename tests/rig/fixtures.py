"""What the fixtures of clusters and machines share: the skip where one cannot run, and its end with the tests."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from types import ModuleType
from typing import Protocol, TypeVar

import pytest


class Cluster(Protocol):
    """A cluster or a machine of the rig."""

    def up(self) -> None:
        """Start the daemons."""
        ...

    def down(self) -> None:
        """End the daemons and everything that they have started."""
        ...


C = TypeVar("C", bound=Cluster)


def module_of(name: str, title: str, plugin: str = "rlnb_dask", **options: bool) -> ModuleType:
    """Return a module of the rig; skip the test where it cannot be used.

    Args:
        name: Name of the module.
        title: Name of the cluster or the machine.
        plugin: Plugin that the tests need.
        options: Arguments of the module's function ``missing``.
    """
    if importlib.util.find_spec(plugin) is None:
        pytest.skip(f"{plugin.replace('_', '-')} is not installed here")
    rig = importlib.import_module(name)
    if lacking := rig.missing(**options):
        pytest.skip(f"{title} cannot run here. Missing: {', '.join(lacking)}")
    return rig


@contextlib.contextmanager
def running(cluster: C) -> Iterator[C]:
    """Start a cluster, and end it after the block, even if it has not started as a whole."""
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.down()
