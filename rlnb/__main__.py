"""``python -m rlnb``: the ``rlnb`` command of exactly this interpreter."""

from rlnb.cli.app import app

app(prog_name="rlnb")
