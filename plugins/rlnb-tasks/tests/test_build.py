import hashlib
import json
from pathlib import Path

from rlnb_tasks import files, plugin


def test_every_promised_file_exists_and_matches_its_hash(assets: Path) -> None:
    index = json.loads((assets / "assets.json").read_text())
    assert index["failed"] == {}
    for pack in (pack for pack in plugin.rlnb_asset_packs() if not pack.on_request):
        written = index["packs"][pack.name]
        assert written["version"] == pack.version
        assert {path: entry["licence"] for path, entry in written["files"].items()} == dict(pack.files)
        for path, entry in written["files"].items():
            assert hashlib.sha256((assets / path).read_bytes()).hexdigest() == entry["sha256"], path
            assert entry["source"]


def test_nothing_else_is_written(assets: Path) -> None:
    written = {str(file.relative_to(assets)) for file in assets.rglob("*") if file.is_file()}
    assert written == {*files.PRIMITIVES, *files.HANDS, "assets.json"}


def test_two_builds_are_byte_equal_and_contain_no_path_of_this_machine(assets: Path, tmp_path: Path) -> None:
    from rlnb_tasks import build

    for path in {**build.primitives(tmp_path), **build.hands(tmp_path)}:
        content = (tmp_path / path).read_bytes()
        assert content == (assets / path).read_bytes(), path
        assert str(tmp_path).encode() not in content
        assert str(Path.home()).encode() not in content


def test_every_usd_file_of_these_tasks_opens(assets: Path) -> None:
    for path in (
        files.CARTPOLE,
        files.DOUBLE_PENDULUM,
        files.ANT,
        files.HUMANOID,
        files.GROUND,
        files.ARROW,
        files.FRAME,
        files.DEX_CUBE,
        files.SHADOW_HAND,
    ):
        from pxr import Usd

        stage = Usd.Stage.Open(str(assets / path))
        assert stage.GetDefaultPrim().IsValid(), path
