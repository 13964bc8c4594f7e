"""Asset packs: builds, files that are left alone, and errors of packs that fail. No simulator."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlnb import RlnbError
from rlnb.hooks import plugins
from rlnb.plugin import AssetPack
from rlnb.worker.assets import packs
from rlnb.worker.assets.packs import PREBUILT, adopt_prebuilt
from rlnb.worker.isaac import isaaclab, release

ENTRY = {"sha256": "0" * 64, "licence": "MIT", "source": "made elsewhere"}
Write = Callable[[Path], dict[str, str]]


class Packs(dict[str, AssetPack]):
    """The installed packs of a test, and how often each was built."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.module = types.ModuleType("packs_of_a_test")
        monkeypatch.setitem(sys.modules, self.module.__name__, self.module)
        monkeypatch.setattr(plugins, "asset_packs", lambda: dict(self))

    def install(
        self,
        name: str,
        *paths: str,
        version: str = "1",
        fails: str = "",
        on_request: bool = False,
        takes_s: float = 0.0,
    ) -> None:
        def build(folder: Path) -> dict[str, str]:
            self.calls.append(name)
            time.sleep(takes_s)
            if fails:
                raise RlnbError(fails)
            for path in paths:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(f"{name} {version}")
            return dict.fromkeys(paths, f"made by {name}")

        setattr(self.module, name, build)
        self[name] = AssetPack(
            name=name,
            version=version,
            build=f"{self.module.__name__}:{name}",
            files=dict.fromkeys(paths or ("promised.usd",), "MIT"),
            on_request=on_request,
        )


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Packs:
    """Return the installed packs, empty at first; the cache is a folder of the test."""
    monkeypatch.setenv("RLNB_CACHE", str(tmp_path / "cache"))
    return Packs(monkeypatch)


def test_two_packs_share_a_folder_whose_index_lists_each_file_with_its_source(installed: Packs) -> None:
    installed.install("arms", "Robots/arm.usd")
    installed.install("legs", "Robots/leg.usd", version="2")
    built = packs.build()
    assert built.folder.name == "arms-1-legs-2"
    assert built.folder == packs.root_folder()
    assert (built.folder / "Robots/leg.usd").read_text() == "legs 2"
    index = json.loads((built.folder / "assets.json").read_text())
    assert index["packs"]["legs"] == {
        "version": "2",
        "files": {
            "Robots/leg.usd": {
                "sha256": hashlib.sha256(b"legs 2").hexdigest(),
                "licence": "MIT",
                "source": "made by legs",
            }
        },
    }
    packs.build()
    assert installed.calls == ["arms", "legs"]
    packs.build(force=True)
    assert installed.calls == ["arms", "legs"] * 2


def test_two_builds_at_the_same_time_build_a_pack_once(installed: Packs) -> None:
    installed.install("arms", "Robots/arm.usd", takes_s=0.3)
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda _: packs.build(), range(2))
    assert installed.calls == ["arms"]
    assert (first.failed, second.failed) == ({}, {})


def test_a_pack_that_fails_leaves_the_others_alone_and_is_retried_only_on_request(installed: Packs) -> None:
    installed.install("arms", fails="no isaaclab here.")
    installed.install("legs", "leg.usd")
    built = packs.build()
    assert built.failed == {"arms": "no isaaclab here."}
    assert (built.folder / "leg.usd").is_file()
    assert packs.build(retry=False).failed == built.failed
    assert installed.calls == ["arms", "legs"]
    assert packs.fix("promised.usd", built.folder).endswith("no isaaclab here. Fix that, then run: rlnb assets build")

    installed.install("arms", "arm.usd")
    assert packs.build().failed == {}, "before a build by hand, the user may have fixed the cause"
    assert (built.folder / "arm.usd").is_file()


def test_packs_on_request_are_added_to_an_existing_root(installed: Packs, tmp_path: Path) -> None:
    installed.install("arms", "arm.usd")
    installed.install("dogs", "dog.usd", on_request=True)
    folder = packs.build().folder
    assert folder.name == "arms-1"
    assert not (folder / "dog.usd").exists()
    assert packs.fix("dog.usd", folder) == "rlnb assets build --robots"
    assert packs.fix("dog.usd", tmp_path) == f"rlnb assets build --robots {tmp_path}"
    assert "No installed asset pack makes this file" in packs.fix("cat.usd", folder)

    assert packs.build(on_request=True).folder == folder
    assert (folder / "dog.usd").is_file()
    packs.build()
    assert (folder / "dog.usd").is_file()
    assert installed.calls == ["arms", "dogs"]


def test_a_file_of_the_user_is_kept_even_by_force(installed: Packs, tmp_path: Path) -> None:
    installed.install("arms", "Robots/arm.usd", "Robots/hand.usd")
    mounted = tmp_path / "mounted"
    (mounted / "Robots").mkdir(parents=True)
    (mounted / "Robots/arm.usd").write_text("NVIDIA's")
    for force in (False, True):
        built = packs.build(mounted, force=force)
        assert built.foreign == ("Robots/arm.usd",)
        assert (mounted / "Robots/arm.usd").read_text() == "NVIDIA's"
        assert (mounted / "Robots/hand.usd").read_text() == "arms 1"


def test_a_pack_that_writes_other_files_than_it_lists_fails(installed: Packs) -> None:
    installed.install("arms")
    built = packs.build()
    assert "['promised.usd']" in built.failed["arms"]
    assert list(built.folder.iterdir()) == [built.folder / "assets.json"]


def test_nothing_is_written_next_to_the_folder_and_a_plugins_own_error_names_its_type(
    installed: Packs, tmp_path: Path
) -> None:
    installed.install("arms", "arm.usd")
    installed.module.__dict__["arms"] = lambda folder: {}["no such key"]
    mounted = tmp_path / "around" / "mounted"
    assert packs.build(mounted).failed == {"arms": "KeyError: 'no such key'"}
    assert list(mounted.parent.iterdir()) == [mounted]


def test_without_a_pack_there_is_nothing_to_build(installed: Packs) -> None:
    with pytest.raises(RlnbError, match=r"pip install .*rlnb-tasks"):
        packs.build()


def inodes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_ino for path in folder.rglob("*.usd")}


def test_adding_updating_or_removing_a_pack_leaves_other_packs_and_earlier_roots_alone(
    installed: Packs,
) -> None:
    installed.install("arms", "Robots/arm.usd")
    first = packs.build().folder
    files = inodes(first)

    installed.install("legs", "Robots/leg.usd")
    second = packs.build().folder
    assert inodes(second)["Robots/arm.usd"] == files["Robots/arm.usd"]
    installed.install("legs", "Robots/leg.usd", version="2")
    third = packs.build().folder
    assert inodes(third)["Robots/arm.usd"] == files["Robots/arm.usd"]
    assert (third / "Robots/leg.usd").read_text() == "legs 2"
    assert (second / "Robots/leg.usd").read_text() == "legs 1", "a run that used this root names this path"
    assert installed.calls == ["arms", "legs", "legs"]

    del installed["legs"]
    assert packs.build().folder == first
    assert inodes(first) == files
    assert installed.calls == ["arms", "legs", "legs"]
    assert (third / "Robots/leg.usd").is_file()


def test_a_pack_that_is_rebuilt_by_force_leaves_the_others_alone(installed: Packs) -> None:
    installed.install("arms", "arm.usd")
    installed.install("dogs", "dog.usd", on_request=True)
    folder = packs.build(on_request=True).folder
    before = inodes(folder)
    packs.build(force=True)
    assert inodes(folder)["dog.usd"] == before["dog.usd"]
    assert inodes(folder)["arm.usd"] != before["arm.usd"]
    assert not [path for path in packs.cache_folder().rglob("*") if path.name.startswith(".")]


def test_a_builder_that_was_killed_leaves_nothing_behind(installed: Packs) -> None:
    installed.install("arms", "arm.usd")
    folder = packs.cache_folder() / "assets" / "packs"
    left, at_work = folder / ".building-left", folder / ".building-elsewhere"
    for draft in (left, at_work):
        draft.mkdir(parents=True)
    os.utime(left, (time.time() - 7200, time.time() - 7200))
    packs.build()
    assert not left.exists()
    assert at_work.exists(), "another node may build there: not every shared file system has locks"


def test_a_builder_that_another_node_overtakes_uses_the_pack_of_that_node(installed: Packs) -> None:
    installed.install("arms", "arm.usd")
    build = installed.module.__dict__["arms"]

    def overtaken(folder: Path) -> dict[str, str]:
        if installed.calls.count("arms") == 0:
            other = packs.cache_folder() / "assets" / "packs" / "arms-1"
            made = build(folder)
            shutil.copytree(folder, other)
            packs._write_index(other, {"packs": {"arms": {"version": "1", "files": {"arm.usd": ENTRY}}}})
            return made
        return build(folder)

    installed.module.__dict__["arms"] = overtaken
    built = packs.build()
    assert built.failed == {}
    assert packs.index(built.folder).packs["arms"].files == {"arm.usd": packs.PackedFile(**ENTRY)}


def test_a_root_whose_builder_was_killed_before_it_wrote_the_index_is_completed(installed: Packs) -> None:
    installed.install("arms", "Robots/arm.usd")
    folder = packs.build().folder
    index = packs.index(folder)
    (folder / "assets.json").unlink()
    built = packs.build()
    assert built.foreign == ()
    assert packs.index(folder) == index
    assert installed.calls == ["arms"]


def test_packs_on_request_are_part_of_the_next_root(installed: Packs) -> None:
    installed.install("arms", "arm.usd")
    installed.install("dogs", "dog.usd", on_request=True)
    packs.build(on_request=True)
    installed.install("legs", "leg.usd")
    folder = packs.build().folder
    assert folder.name == "arms-1-legs-1"
    assert (folder / "dog.usd").is_file()
    assert installed.calls == ["arms", "dogs", "legs"]


def test_a_build_logs_that_it_waits_for_another_process_and_ends_after_a_time_limit(
    installed: Packs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    installed.install("arms", "arm.usd")
    folder = packs.cache_folder() / "assets" / "packs"
    folder.mkdir(parents=True)
    code = (
        "import fcntl, os, sys, time\n"
        f"fcntl.flock(os.open({str(folder)!r}, os.O_RDONLY), fcntl.LOCK_EX)\n"
        "print(flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        monkeypatch.setattr(packs, "WAIT_S", 0.3)
        with pytest.raises(RlnbError, match=r"has been building asset packs in .* End that process .*RLNB_CACHE"):
            packs.build()
        assert "Another process builds asset packs" in caplog.text
        assert installed.calls == []
        other.kill()
    packs.build()
    assert installed.calls == ["arms"], "the lock of a process that is gone is free"


def test_files_are_copied_if_the_file_system_has_no_hard_links(
    installed: Packs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(packs.os, "link", refuse)
    installed.install("arms", "Robots/arm.usd")
    folder = packs.build().folder
    assert (folder / "Robots/arm.usd").read_text() == "arms 1"
    assert sorted(path.name for path in folder.rglob("*")) == ["Robots", "arm.usd", "assets.json"]


def test_many_packs_have_a_root_with_a_short_name(installed: Packs) -> None:
    for number in range(30):
        installed.install(f"pack_number_{number}", f"{number}.usd")
    folder = packs.build().folder
    assert len(folder.name) < 100
    assert len(inodes(folder)) == 30


# -- prebuilt --------------------------------------------------------------------------------------------------------


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
