"""Only a process with the key of a job connects to it, and only the job answers that process."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
import sys
import threading
from pathlib import Path

import pytest

from rlnb.errors import RlnbError
from rlnb.protocol import tls
from rlnb.protocol.tls import write_key


def settings(key: Path, *, server: bool, lax: bool) -> ssl.SSLContext:
    """Return the TLS settings of one side; those of a lax side accept every certificate of the other side."""
    context = tls.context(key, server=server)
    if lax:
        context.verify_mode = ssl.CERT_NONE
    return context


def answer(
    server_key: Path, client_key: Path, lax: str = "", newest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED
) -> bytes:
    """Return what a server that echoes answers to a client, which speaks TLS up to a version."""
    server = settings(server_key, server=True, lax=lax == "server")
    client = settings(client_key, server=False, lax=lax == "client")
    client.minimum_version, client.maximum_version = ssl.TLSVersion.TLSv1_2, newest
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            plain, _ = listener.accept()
            try:
                with server.wrap_socket(plain, server_side=True) as connection:
                    connection.sendall(connection.recv(100))
            except OSError:
                plain.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with (
                socket.create_connection(listener.getsockname(), timeout=20) as plain,
                client.wrap_socket(plain) as connection,
            ):
                tls.watch(connection)
                connection.sendall(b"hello")
                return connection.recv(100)
        finally:
            thread.join(20)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "two"):
        write_key(tmp_path / name)
    return tmp_path / "one", tmp_path / "two"


def test_two_sides_with_the_same_key_talk(keys: tuple[Path, Path]) -> None:
    assert answer(keys[0], keys[0]) == b"hello"


def test_the_kernel_refuses_another_job_even_one_that_accepts_every_kernel(keys: tuple[Path, Path]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        answer(*keys, lax="server")


def test_the_job_refuses_another_kernel_even_one_that_accepts_every_job(keys: tuple[Path, Path]) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):  # with TLS 1.3, when the client reads
        answer(*keys, lax="client")


def test_an_older_version_of_tls_is_refused(keys: tuple[Path, Path]) -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)version"):
        answer(keys[0], keys[0], newest=ssl.TLSVersion.TLSv1_2)
    assert tls.context(keys[0], server=False).minimum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux names the options like this")
def test_tcp_looks_for_a_peer_that_is_gone() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as connection,
    ):
        tls.watch(connection)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        assert [connection.getsockopt(socket.IPPROTO_TCP, name) for name in names] == [3, 2, 3, 9000]


def test_a_key_that_others_can_read_or_that_belongs_to_another_user_is_refused(keys: tuple[Path, Path]) -> None:
    keys[0].chmod(0o640)
    with pytest.raises(PermissionError, match=r"is not a file that only this user can read .*mode 640"):
        tls.context(keys[0], server=True)
    if os.geteuid() == 0:
        os.chown(keys[1], 65_534, 65_534)
        with pytest.raises(PermissionError, match=r"owner 65534"):
            tls.context(keys[1], server=False)


# -- key -------------------------------------------------------------------------------------------------------------


def test_only_the_user_can_read_a_key_and_none_is_overwritten(tmp_path: Path) -> None:
    write_key(tmp_path / "key")
    write_key(tmp_path / "other")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "key").read_text()
    assert "BEGIN PRIVATE KEY" in text
    assert "BEGIN CERTIFICATE" in text
    assert text != (tmp_path / "other").read_text()
    with pytest.raises(FileExistsError):
        write_key(tmp_path / "key")


def test_a_machine_whose_clock_is_years_behind_or_ahead_accepts_the_key(tmp_path: Path) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    write_key(tmp_path / "key")
    found = x509.load_pem_x509_certificate((tmp_path / "key").read_bytes())
    now = datetime.datetime.now(datetime.UTC)
    assert found.not_valid_before_utc < now - datetime.timedelta(days=20 * 365)
    assert found.not_valid_after_utc > now + datetime.timedelta(days=9 * 365)


def test_without_the_package_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(RlnbError, match="pip install cryptography"):
        write_key(tmp_path / "key")
