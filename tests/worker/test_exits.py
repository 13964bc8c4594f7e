"""Modules that parse the command line of the process that imports them."""

from __future__ import annotations

import argparse
import sys

import pytest

import rlnb
from rlnb.worker.jobs.job import exit_as_error


def test_the_sentence_of_argparse_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["worker", "serve", "--pipe"])
    parser = argparse.ArgumentParser()
    parser.add_argument("--task")
    with pytest.raises(SystemExit) as caught:
        parser.parse_args()
    error = exit_as_error(caught.value)
    assert isinstance(error, rlnb.RlnbError)
    assert "argparse says: unrecognized arguments: serve --pipe" in str(error)
    assert f"{__file__}, line 19, parses the command line" in str(error)
    assert error.__traceback__ is caught.tb


def test_other_exits_and_errors_stay_as_they_are() -> None:
    for exc in (SystemExit(2), ValueError("x")):
        assert exit_as_error(exc) is exc
