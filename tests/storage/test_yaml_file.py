"""YAML files that are larger than they look, deep, or not YAML."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import rlnb
from rlnb.storage.yaml_file import load

LEVELS = "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(22))
ODD = {
    "aliases": ("a: &a [x, x, x, x, x, x, x, x, x]\n" + LEVELS, "stands for more than 20,000 values"),
    "itself": ("a: &a [*a]\n", "contains itself at \\*a"),
    "depth": ("a: " + "[" * 5000, "is nested deeper than 100 levels"),
    "number": ("a: " + "9" * 5000, "is not plain YAML"),
    "names": ("\n".join(f"k{n}: 1" for n in range(60_000)), "stands for more than 20,000 values"),
    "size": ("a: " + "x" * (1 << 20), "is larger than 1 MiB"),
    "no YAML": ("a: [", "is not plain YAML"),
    "bytes": ("a: \udcff", "is not plain YAML"),
}
LIMIT_S = 10.0


@pytest.mark.parametrize("kind", ["safe", "rt"])
@pytest.mark.parametrize(("text", "message"), ODD.values(), ids=ODD)
def test_an_odd_file_is_refused_soon(kind: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    begin_s = time.monotonic()
    with pytest.raises(rlnb.RlnbError, match=message):
        load(path, kind)  # type: ignore[arg-type]
    assert time.monotonic() - begin_s < LIMIT_S


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agent.yaml")
    with pytest.raises(rlnb.RlnbError, match="is not a regular file"):
        load(tmp_path / "agent.yaml", "safe")


def test_an_ordinary_file_is_read_with_its_aliases(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("a: &a {lr: 5e-4, layers: [64, 64]}\nb: *a\nc: &c 1\nd: *c\n")
    layers = {"lr": 5e-4, "layers": [64, 64]}
    assert load(tmp_path / "agent.yaml", "safe") == {"a": layers, "b": layers, "c": 1, "d": 1}
