"""pip installs rlnb's packages from the folder of wheels, even if an index offers newer ones under the same names."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release(load_rig: Callable[[str], ModuleType]) -> ModuleType:
    return load_rig("release")


def wheel(folder: Path, name: str, version: str) -> Path:
    """Write a wheel without any module."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_the_constraints_name_the_file_of_each_wheel(release: ModuleType, tmp_path: Path) -> None:
    for name in ("rlnb", "rlnb_rsl_rl"):
        wheel(tmp_path, name, "1.0")
    plain, beside_isaacsim, overrides = release.write_constraints(tmp_path)
    for path in (plain, beside_isaacsim):
        lines = path.read_text().splitlines()
        assert lines[-2:] == [
            "rlnb @ file://${PWD}/rlnb-1.0-py3-none-any.whl",
            "rlnb-rsl-rl @ file://${PWD}/rlnb_rsl_rl-1.0-py3-none-any.whl",
        ]
        assert lines[:-2] == (REPO / path.name).read_text().splitlines()
    assert {path.parent for path in (plain, beside_isaacsim, overrides)} == {tmp_path}
    assert overrides.read_text() == (REPO / "overrides-isaacsim.txt").read_text()


@pytest.mark.slow
def test_pip_takes_our_packages_from_the_folder_and_not_from_an_index(release: ModuleType, tmp_path: Path) -> None:
    folder, index = tmp_path / "dist", tmp_path / "index"
    for package in (".", "plugins/rlnb-echo", "plugins/rlnb-dask"):
        argv = [str(Path(sys.executable).with_name("uv")), "build", "--quiet", "--wheel", "--out-dir", str(folder)]
        subprocess.run([*argv, str(REPO / package)], check=True)
    for name in ("rlnb", "rlnb_echo", "rlnb_dask"):
        wheel(index, name, "9.9")
    release.write_constraints(folder)
    python = release.install(folder, tmp_path / "venv", ("rlnb[dask]", "rlnb-echo"), "--find-links", str(index))
    sources = release.origins(python)
    assert {*sources} == {"rlnb", "rlnb-echo", "rlnb-dask"}
    assert all(url.startswith(folder.as_uri()) for url in sources.values())
    code = "import rlnb; rlnb.options.root = 'runs'; print(rlnb.train('Echo', library='echo', max_iterations=2).wait())"
    trained = subprocess.run([str(python), "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "completed" in trained.stdout, trained.stderr
    elsewhere = [
        str(python),
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--constraint",
        str(folder / "constraints.txt"),
        "rlnb",
    ]
    refused = subprocess.run(elsewhere, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode != 0, "pip must not fall back to an index when it runs outside the folder of wheels"
