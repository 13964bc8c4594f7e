"""A shell with the magics of rlnb, as a kernel has it."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

import rlnb

NOTEBOOK = "lift.ipynb"


@pytest.fixture
def shell(root, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", NOTEBOOK)
    shell = InteractiveShell.instance()
    rlnb.load_ipython_extension(shell)
    yield shell
    InteractiveShell.clear_instance()
