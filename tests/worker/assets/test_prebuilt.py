"""What an image brings is copied into the caches of the user who starts it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from rlnb.worker.assets.packs import PREBUILT, adopt_prebuilt
from rlnb.worker.isaac import isaaclab, release

KERNEL = "1.17.0/wp_module_1/wp_module_1.o"
ROBOT = "assets/packs/robots-1/ant.usd"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, beside an image with a kernel and a robot."""
    for path, text in ((f"warp/{KERNEL}", "kernel"), (f"rlnb/{ROBOT}", "robot")):
        file = tmp_path / "image" / path
        file.parent.mkdir(parents=True)
        file.write_text(text)
    for name in ("WARP_CACHE_PATH", "RLNB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(PREBUILT, str(tmp_path / "image"))
    return tmp_path / "home"


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_start_finds_the_kernels_and_the_robots_of_its_image(home: Path) -> None:
    adopt_prebuilt()
    assert contents(home) == {f".cache/warp/{KERNEL}": "kernel", f".cache/rlnb/{ROBOT}": "robot"}


def test_isaac_lab_has_them_before_robots_are_searched_and_warp_is_imported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(explicit: str | None, cloud: str) -> None:
        assert contents(home)
        raise InterruptedError

    monkeypatch.setattr(isaaclab.assets, "search", search)
    monkeypatch.setattr(release, "check", lambda: None)
    with pytest.raises(InterruptedError):
        isaaclab.start.__wrapped__()


def test_caches_of_other_folders_get_them_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARP_CACHE_PATH", str(home / "volume/warp"))
    monkeypatch.setenv("RLNB_CACHE", str(home / "volume"))
    adopt_prebuilt()
    assert contents(home) == {f"volume/warp/{KERNEL}": "kernel", f"volume/rlnb/{ROBOT}": "robot"}


def test_the_user_s_own_files_stay_and_are_joined_by_those_that_they_lack(home: Path) -> None:
    own = home / ".cache/warp" / KERNEL
    own.parent.mkdir(parents=True)
    own.write_text("own")
    gpu = own.with_name("wp_module_1.sm90.cubin")
    gpu.write_text("of a GPU")
    adopt_prebuilt()
    files = contents(home / ".cache")
    assert files == {f"warp/{KERNEL}": "own", f"warp/{KERNEL[:-2]}.sm90.cubin": "of a GPU", f"rlnb/{ROBOT}": "robot"}


def test_a_build_that_fills_the_image_changes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = Path(os.environ[PREBUILT])
    monkeypatch.setenv("WARP_CACHE_PATH", str(image / "warp"))
    monkeypatch.setenv("RLNB_CACHE", str(image))
    before = contents(image)
    adopt_prebuilt()
    assert contents(image) == before
    assert not home.exists()


def test_without_an_image_nothing_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PREBUILT)
    adopt_prebuilt()
    monkeypatch.setenv(PREBUILT, str(home / "nowhere"))
    adopt_prebuilt()
    assert not home.exists()


def test_a_cache_that_cannot_be_written_is_a_warning(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    home.write_text("no folder")
    with caplog.at_level(logging.WARNING):
        adopt_prebuilt()
    assert "were not copied" in caplog.text
