"""rlnb is installed on another machine from wheels, or nothing of it is left there. The machine is another home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from rlnb_ssh import install as module
from rlnb_ssh.launcher import Ssh

import rlnb

UV = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


class Here(Ssh):
    """Reaches this machine, with another home."""

    def reach(self, argv: Sequence[str]) -> Sequence[str]:
        command = super().reach(argv)[-1]
        return ["env", f"HOME={self.place}", f"PATH={self.place}/bin:/usr/bin:/bin", "sh", "-c", command]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a folder with small wheels of rlnb and of a plugin."""
    packages = {"rlnb": rlnb.__version__, "rlnb-small": "2.0"}
    monkeypatch.setattr(module, "versions", lambda: packages)
    return folder_of(tmp_path / "dist", packages)


def folder_of(folder: Path, packages: Mapping[str, str], body: str = "") -> Path:
    folder.mkdir()
    constraints = []
    for name, version in packages.items():
        stem = f"{name.replace('-', '_')}-{version}"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name.replace('-', '_')}/__init__.py", body)
            wheel.writestr(f"{stem}.dist-info/METADATA", METADATA.format(name=name, version=version))
            wheel.writestr(f"{stem}.dist-info/WHEEL", WHEEL)
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
        constraints.append(f"{name} @ file://${{PWD}}/{stem}-py3-none-any.whl\n")
    (folder / "constraints.txt").write_text("".join(constraints))
    return folder


@pytest.fixture
def machine(tmp_path: Path) -> Here:
    """Provide a machine with uv."""
    if UV is None:
        pytest.skip("uv is not installed")
    (tmp_path / "home" / "bin").mkdir(parents=True)
    (tmp_path / "home" / "bin" / "uv").symlink_to(UV)
    return Here(str(tmp_path / "home"), python="~/my envs/rl/bin/python")


def test_the_environment_has_its_name_once_it_is_complete(machine: Here, wheels: Path) -> None:
    machine.install(wheels, base=sys.executable)
    folder = Path(machine.place) / "my envs"
    code = "import rlnb, rlnb_small, importlib.metadata as m; print(m.version('rlnb-small'), rlnb.__file__)"
    argv = [folder / "rl" / "bin" / "python", "-I", "-c", code]
    version, file = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split(maxsplit=1)
    assert (version, file.startswith(str(folder))) == ("2.0", True)
    assert (folder / "rl").is_symlink()
    assert len([*folder.iterdir()]) == 2, "the copies of the wheels are removed"
    with pytest.raises(rlnb.CheckError, match=r"my envs/rl exists\."):
        machine.install(wheels, base=sys.executable)
    assert len([*folder.iterdir()]) == 2


def test_nothing_is_left_of_an_installation_that_fails(
    machine: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = {"rlnb": rlnb.__version__}
    monkeypatch.setattr(module, "versions", lambda: packages)
    broken = folder_of(tmp_path / "broken", packages, "raise ImportError('a library is missing')")
    with pytest.raises(rlnb.RlnbError, match=r"status 1, and nothing of it is left there(.|\n)*a library is missing"):
        machine.install(broken, base=sys.executable)
    assert not [*(Path(machine.place) / "my envs").iterdir()]


def test_every_problem_of_this_machine_is_named_before_the_other_is_reached(tmp_path: Path) -> None:
    with pytest.raises(rlnb.CheckError) as error:
        Ssh("anna@gpu7", python="python3").install(tmp_path)
    texts = [problem.what for problem in error.value.problems]
    assert [text.rpartition(" ")[2] for text in texts[::2]] == ["environment.", "constraints.txt."]
    assert "has no wheels of the versions here of rlnb, " in texts[1]


def test_every_problem_of_the_other_machine_is_named_and_nothing_is_made(tmp_path: Path, wheels: Path) -> None:
    home = tmp_path / "bare"
    (home / "taken" / "rl").mkdir(parents=True)
    (wheels / "large-1-py3-none-any.whl").write_bytes(b"of more than a pipe holds" * (1 << 17))
    with pytest.raises(rlnb.CheckError) as error:
        Here(str(home), python="~/taken/rl/bin/python").install(wheels, base="python4")
    assert [problem.what for problem in error.value.problems] == [
        f"{home}/taken/rl exists.",
        "there is neither uv nor python4 with venv and ensurepip.",
    ]
    assert not [*(home / "taken" / "rl").iterdir()]
    assert [*home.iterdir()] == [home / "taken"]
