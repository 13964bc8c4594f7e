"""Echo as rlnb lists it."""

import fnmatch
import re

from rlnb_echo import backend, plugin

import rlnb
from rlnb.hooks import plugins


def test_rlnb_lists_the_library_and_its_task() -> None:
    assert plugins.library("echo") == plugin.ECHO
    assert rlnb.task("Echo").id == "Echo"


def test_the_backend_is_the_one_the_library_names() -> None:
    assert plugins.load(plugin.ECHO.backend) is backend.Echo


def test_the_name_of_a_checkpoint_has_its_iteration() -> None:
    name = "model_14.json"
    assert fnmatch.fnmatch(name, plugin.ECHO.checkpoint_glob)
    match = re.search(plugin.ECHO.checkpoint_pattern, name)
    assert match is not None
    assert match[1] == "14"
