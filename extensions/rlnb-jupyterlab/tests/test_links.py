"""Files that the output of a cell names have links if the server serves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from asking import asked, echo, logged_in, refused
from rlnb_jupyterlab.watcher import key_of

NONE = {"url": "", "opens": False}


async def link(jp_fetch: Any, path: object) -> dict[str, Any]:
    answer: dict[str, Any] = await asked(jp_fetch, "link", params={"path": str(path)})
    return answer


async def followed(jp_fetch: Any, url: str) -> Any:
    return await jp_fetch(*unquote(url).split("/"))  # which quotes them again


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("content")
    return path


async def test_a_report_of_a_run_is_opened_and_an_export_is_downloaded(jp_fetch: Any, root: Path) -> None:
    run = echo().wait(60)
    report, export = written(run.path / "report.html"), written(run.path / "exports" / "a#b ü%2f?.onnx")
    folder = f"rlnb/runs/{key_of(run)}/files"
    assert await link(jp_fetch, report) == {"url": f"{folder}/report.html", "opens": True}
    answer = await link(jp_fetch, export)
    assert answer == {"url": f"{folder}/exports/a%23b%20%C3%BC%252f%3F.onnx", "opens": False}
    assert not (await link(jp_fetch, written(run.path / "media" / "training-000001.mp4")))["opens"]
    for found in (f"{folder}/report.html", answer["url"]):
        assert (await followed(jp_fetch, found)).body == b"content"


async def test_a_path_through_a_link_of_the_user_is_found(jp_fetch: Any, root: Path, tmp_path: Path) -> None:
    run = echo().wait(60)
    written(run.path / "report.html")
    (tmp_path / "shared").symlink_to(root)
    answer = await link(jp_fetch, tmp_path / "shared" / "runs" / run.id / "report.html")
    assert answer["url"] == f"rlnb/runs/{key_of(run)}/files/report.html"


async def test_a_report_of_several_runs_is_served_in_a_sandbox(jp_fetch: Any, root: Path) -> None:
    path = written(root / "reports" / "20260101-000000-abcd.html")
    answer = await link(jp_fetch, path)
    assert answer == {"url": f"rlnb/reports/0/{path.name}", "opens": True}
    served = await followed(jp_fetch, answer["url"])
    assert served.headers["Content-Type"] == "text/html"
    assert served.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")


@pytest.mark.parametrize(
    "name", ["9/a.html", "0/none.html", "0/.hidden.html", "0/link.html", "0/..%2Fsecret.html", "0/{root}"]
)
async def test_nothing_else_is_served_as_a_report(
    jp_fetch: Any, http_server_client: Any, jp_base_url: str, jp_auth_header: Any, root: Path, name: str
) -> None:
    written(root / "secret.html")
    written(root / "reports" / ".hidden.html")
    (root / "reports" / "link.html").symlink_to(root / "secret.html")
    name = name.format(root=quote(str(root / "secret.html"), safe=""))
    url = f"{jp_base_url}rlnb/reports/{name}"  # jp_fetch would quote it again
    answer = await http_server_client.fetch(url, headers=jp_auth_header, raise_error=False, request_timeout=10)
    assert answer.code == 404


async def test_a_file_in_the_folder_of_the_server_has_the_link_of_its_file_browser(
    jp_fetch: Any, jp_serverapp: Any, root: Path
) -> None:
    folder = Path(jp_serverapp.root_dir)
    for name, opens in {"a b/cartpole.html": True, "cartpole.pdf": False, "cartpole.ipynb": False}.items():
        answer = await link(jp_fetch, written(folder / name))
        assert answer == {"url": f"files/{name.replace(' ', '%20')}", "opens": opens}
        assert (await followed(jp_fetch, answer["url"])).body == b"content"


async def test_what_the_server_does_not_serve_has_no_link(
    jp_fetch: Any, jp_serverapp: Any, root: Path, tmp_path: Path
) -> None:
    run = echo().wait(60)
    outside, hidden = written(tmp_path / "outside.html"), written(Path(jp_serverapp.root_dir) / ".ssh" / "key.html")
    records = [run.path / "jobs" / "0-train" / "command.json", run.path / "none.html", run.path]
    odd = ["", "report.html", "..", "/", "~", "a\0b", "/" + "n" * 300]
    for path in (outside, hidden, *records, *odd):
        assert await link(jp_fetch, path) == NONE, path


async def test_another_site_gets_no_link(jp_fetch: Any, jp_serverapp: Any, root: Path) -> None:
    cookie = await logged_in(jp_fetch, jp_serverapp)
    headers = {"Cookie": cookie, "Authorization": "", "Sec-Fetch-Site": "cross-site"}
    assert (await refused(jp_fetch, "link", params={"path": "/"}, headers=headers))[0] == 403
