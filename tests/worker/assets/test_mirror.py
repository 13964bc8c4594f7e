"""Copying the files of tasks: everything that a file refers to, and nothing else, from a folder and over HTTP."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.errors import RlnbError
from rlnb.worker.assets.mirror import mirror
from rlnb.worker.assets.root import AssetRoot

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("pxr") is None, reason="USD is not installed here"),
]

ROBOT = """#usda 1.0
(
    subLayers = [@./parts/base.usda@]
)
def Xform "robot" (
    prepend references = @../props/arm.usda@
)
{
    def Shader "skin"
    {
        asset inputs:file = @./textures/skin.png@
        asset inputs:tiles = @./textures/wood.<UDIM>.png@
        asset inputs:away = @/elsewhere/grain.png@
        asset inputs:gone = @./textures/gone.png@
    }
}
"""
LAYER = '#usda 1.0\ndef Xform "{name}"\n{{\n}}\n'
FILES = {
    "robots/one/robot.usda": ROBOT,
    "robots/one/parts/base.usda": LAYER.format(name="base"),
    "robots/props/arm.usda": LAYER.format(name="arm").replace("{", "{\n    asset inputs:back = @../one/robot.usda@"),
    "robots/one/textures/skin.png": "skin",
    "robots/one/textures/wood.1001.png": "1",
    "robots/one/textures/wood.1012.png": "2",
    "robots/two/unused.usda": LAYER.format(name="unused"),
}
NEEDED = sorted(set(FILES) - {"robots/two/unused.usda"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "root"


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.mark.parametrize("kind", ["folder", "url"])
def test_all_files_that_are_referred_to_are_copied_and_no_others(
    kind: str, folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    root = AssetRoot(path=str(request.getfixturevalue(kind)), reason="")
    done = mirror(["robots/one/robot.usda", "robots/none.usd"], root, tmp_path / "copy")
    assert sorted(done.copied) == NEEDED
    copies = {str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*") if path.is_file()}
    assert copies == set(NEEDED)
    assert all((tmp_path / "copy" / name).read_text() == FILES[name] for name in NEEDED)
    assert done.missing == {
        "robots/none.usd": "the task",
        "robots/one/textures/gone.png": "robots/one/robot.usda",
    }
    assert done.outside == {"/elsewhere/grain.png": "robots/one/robot.usda"}
    again = mirror(["robots/one/robot.usda"], root, tmp_path / "copy")
    assert (again.copied, sorted(again.existing), again.bytes) == ((), NEEDED, 0)


def test_a_folder_that_cannot_be_written_is_an_error(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("a file")
    with pytest.raises(RlnbError, match=r"robots/one/robot.usda cannot be copied to"):
        mirror(["robots/one/robot.usda"], AssetRoot(path=str(folder), reason=""), tmp_path / "copy")


def test_a_download_that_the_server_cuts_short_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    class Short(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"#usda")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Short)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = AssetRoot(path=f"http://127.0.0.1:{server.server_address[1]}", reason="")
    with pytest.raises(RlnbError, match="after 5 of 1000 bytes"):
        mirror(["robots/my robot.usda"], root, tmp_path / "copy")
    server.shutdown()
    assert not [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
