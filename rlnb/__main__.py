"""``python -m rlnb``: the ``rlnb`` command of exactly this interpreter."""

from rlnb.cli import app

app(prog_name="rlnb")
