"""``python -m rlnb``: the ``rlnb`` command, run by this very interpreter."""

from rlnb.cli.app import app

app(prog_name="rlnb")
