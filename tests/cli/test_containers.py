"""``rlnb containers write``: a folder from which images are built, and what its recipes promise."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from rlnb.cli.containers import RECIPES
from rlnb.machine.packages import PIP
from rlnb.version import __version__

Invoke = Callable[..., Result]
CONTAINERFILES = ("Containerfile.worker", "Containerfile.notebook")
RECIPE_NAMES = {".dockerignore", "README.md", "rlnb.def", *CONTAINERFILES}
RLNB = f"rlnb-{__version__}-py3-none-any.whl"
PANEL = "rlnb_jupyterlab-0.2.0-py3-none-any.whl"


def pack(folder: Path, **wheels: str) -> Path:
    """Fill a folder as ``make wheels`` does, and return it."""
    folder.mkdir()
    lines = ["torch==2.11.0"]
    for name, wheel in wheels.items():
        lines.append(f"{name.replace('_', '-')} @ file://${{PWD}}/{wheel}")
        (folder / wheel).write_text(wheel)
    (folder / "constraints.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A folder of wheels, with an older wheel that the constraints do not name."""
    folder = pack(tmp_path / "dist", rlnb=RLNB, rlnb_jupyterlab=PANEL)
    (folder / "rlnb-0.0.9-py3-none-any.whl").touch()
    (folder / ".env").write_text("TOKEN=1")
    return folder


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def logical_lines(text: str) -> list[str]:
    """Return the lines of a recipe without comments, with continued lines joined."""
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [" ".join(line.split()) for line in re.sub(r"\\\n", " ", kept).splitlines() if line.strip()]


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_folder_has_the_recipes_and_the_wheels_that_the_constraints_name(
    invoke: Invoke, tmp_path: Path, dist: Path
) -> None:
    folder = tmp_path / "new" / "my images"
    result = invoke("containers", "write", folder, "--wheels", dist)
    assert result.exit_code == 0, result.output
    wheels = {"wheels/constraints.txt", f"wheels/{RLNB}", f"wheels/{PANEL}"}
    assert files(folder) == RECIPE_NAMES | wheels
    for name in RECIPE_NAMES:
        assert (folder / name).read_bytes() == (RECIPES / name).read_bytes()
    assert (folder / "wheels/constraints.txt").read_text() == (dist / "constraints.txt").read_text()
    build = "podman build --tag rlnb-worker --file Containerfile.worker ."
    assert result.stdout.strip() == f"cd {shlex.quote(str(folder))} && {build}"


def test_a_second_call_writes_the_same_and_keeps_other_files(invoke: Invoke, tmp_path: Path, dist: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    for _ in range(2):
        assert invoke("containers", "write", tmp_path / "out", "--wheels", dist).exit_code == 0
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_a_changed_recipe_is_not_replaced_and_nothing_is_written(invoke: Invoke, tmp_path: Path, dist: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "rlnb.def").write_text("mine")
    (out / "README.md").symlink_to(tmp_path / "elsewhere")
    result = invoke("containers", "write", out, "--wheels", dist)
    assert result.exit_code == 2
    for name in ("rlnb.def", "README.md"):
        assert f"{out / name} exists and differs from the file to write." in result.output
    assert {path.name for path in out.iterdir()} == {"rlnb.def", "README.md"}
    assert not (tmp_path / "elsewhere").exists()


def test_without_the_wheel_of_the_panel_there_is_no_notebook_image(invoke: Invoke, tmp_path: Path) -> None:
    pack(tmp_path / "dist", rlnb=RLNB)
    result = invoke("containers", "write", tmp_path / "out", "--wheels", tmp_path / "dist")
    assert result.exit_code == 0
    assert "not written: Containerfile.notebook, which needs the wheel of rlnb-jupyterlab" in result.stderr
    assert "Containerfile.notebook" not in files(tmp_path / "out")


def test_wheels_that_are_missing_or_of_another_version_are_named(invoke: Invoke, tmp_path: Path) -> None:
    pack(tmp_path / "old", rlnb="rlnb-0.0.9-py3-none-any.whl", rlnb_dask="rlnb_dask-1-py3-none-any.whl")
    (tmp_path / "old" / "rlnb_dask-1-py3-none-any.whl").unlink()
    result = invoke("containers", "write", tmp_path / "out", "--wheels", tmp_path / "old")
    assert result.exit_code == 2
    assert f"has rlnb 0.0.9. The version of this installation is {__version__}." in result.output
    assert "rlnb_dask-1-py3-none-any.whl does not exist" in result.output
    assert "make wheels extension-wheel" in result.output
    assert not (tmp_path / "out").exists()


def test_a_folder_without_wheels_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("containers", "write", tmp_path / "out", "--wheels", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path} is not a folder of rlnb's wheels" in result.output


def test_an_entry_of_the_constraints_cannot_leave_the_folder(invoke: Invoke, tmp_path: Path) -> None:
    dist = pack(tmp_path / "dist", rlnb=RLNB)
    with (dist / "constraints.txt").open("a") as file:
        file.write("rlnb-x @ file://${PWD}/../secret.whl\nrlnb-y @ file:///etc/passwd.whl\n")
    assert invoke("containers", "write", tmp_path / "out", "--wheels", dist).exit_code == 0
    assert {name for name in files(tmp_path / "out") if name.endswith(".whl")} == {f"wheels/{RLNB}"}


# -- the recipes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTAINERFILES)
def test_an_image_runs_as_an_ordinary_user_and_downloads_only_packages(name: str) -> None:
    lines = logical_lines((RECIPES / name).read_text())
    assert [line for line in lines if line.startswith("USER")][-1] == "USER 1000:1000"
    assert not [line for line in lines if line.startswith("ADD") or "curl" in line or "wget" in line]
    base = next(line for line in lines if line.startswith("ARG"))
    assert ":latest" not in base
    assert all(line.count('"') % 2 == 0 for line in lines)
    commands = [line for line in lines if line.startswith(("CMD", "ENTRYPOINT"))]
    assert commands
    assert all(re.fullmatch(r'(CMD|ENTRYPOINT) \["[^]]+"\]', line) for line in commands)


def test_the_worker_is_built_on_a_public_image_of_python() -> None:
    lines = logical_lines((RECIPES / "Containerfile.worker").read_text())
    assert lines[:2] == ["ARG BASE=docker.io/library/python:3.12-slim-bookworm", "FROM ${BASE}"]
    assert "    BASE=python:3.12-slim-bookworm" in (RECIPES / "rlnb.def").read_text().splitlines()


@pytest.mark.parametrize("name", [*CONTAINERFILES, "rlnb.def"])
def test_packages_of_ours_come_from_the_wheels_and_all_others_are_pinned(name: str) -> None:
    installs = re.findall(r"pip install [^&\n]+", (RECIPES / name).read_text())
    for install in installs:
        assert "--constraint constraints.txt" in install or install.split("--upgrade ")[1].strip(" '\\") == PIP
    assert any("--constraint constraints.txt 'rlnb[" in install for install in installs)


@pytest.mark.parametrize("name", sorted(RECIPE_NAMES))
def test_a_recipe_holds_no_secret_no_accepted_terms_and_no_place_of_one_site(name: str) -> None:
    text = (RECIPES / name).read_text()
    assert not re.search(r"EULA|PRIVACY|TOKEN|PASSWORD|API_KEY|[Pp]roxy|index-url|INDEX_URL|https?://", text)


def test_apptainer_runs_the_commands_of_the_worker() -> None:
    """Only the init process, the user and the lines of Docker are missing: Apptainer runs as the caller."""
    worker = " && ".join(
        line.removeprefix("RUN ")
        for line in logical_lines((RECIPES / "Containerfile.worker").read_text())
        if "&&" in line
    )
    worker = worker.replace("--mount=type=secret,id=pip.conf,target=/etc/pip.conf ", "").replace(" tini", "")
    steps = [step for step in worker.split(" && ") if not step.startswith(("useradd", "install --dir"))]
    post = (RECIPES / "rlnb.def").read_text().partition("%post\n")[2].partition("\n%")[0]
    tasks = "Isaac-Cartpole-Camera-Direct Isaac-Ant-Direct"
    known = [*steps, "set -e", "cd /opt/rlnb/wheels"]
    lines = [line for line in logical_lines(post) if "PATH=/opt" not in line]
    assert f'ARG TASKS="{tasks}"' in (RECIPES / "Containerfile.worker").read_text()
    assert {line.replace(tasks, "$TASKS") for line in lines} == set(known)
