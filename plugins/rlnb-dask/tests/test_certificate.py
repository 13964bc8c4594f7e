"""The certificate of a job."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import wrong_clock
from cryptography import x509
from distributed import Security
from distributed.comm import CommClosedError, connect, listen
from rlnb_dask import certificate


def test_a_node_whose_clock_is_years_behind_or_ahead_accepts_the_certificate() -> None:
    text = certificate.security().tls_worker_cert
    found, now = x509.load_pem_x509_certificate(text.encode()), datetime.datetime.now(datetime.UTC)
    assert found.not_valid_before_utc < now - datetime.timedelta(days=20 * 365)
    assert found.not_valid_after_utc > now + datetime.timedelta(days=9 * 365)
    assert certificate.security().tls_worker_cert != text, "each job has its own"


NODE = """
import socket, ssl, sys
folder, port = sys.argv[1:]
settings = ssl.create_default_context(cafile=f"{folder}/cert.pem")
settings.check_hostname = False
settings.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
print(settings.wrap_socket(socket.create_connection(("127.0.0.1", int(port)))).recv(5).decode())
"""


def greeting(security: Security, folder: Path, ahead_s: float) -> str:
    """Return what a node whose clock is some seconds ahead gets from the host, or the last line of its error."""
    (folder / "cert.pem").write_text(security.tls_worker_cert)
    (folder / "key.pem").write_text(security.tls_worker_key)
    settings = security.get_listen_args("scheduler")["ssl_context"]
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    with settings.wrap_socket(server, server_side=True) as tls:
        node = subprocess.Popen(
            [sys.executable, "-c", NODE, folder, str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **wrong_clock.variables(folder, ahead_s)},
        )
        with contextlib.suppress(OSError):
            tls.accept()[0].sendall(b"hello")
        output, error = node.communicate(timeout=60)
    return output.strip() or error.strip().splitlines()[-1]


@pytest.mark.parametrize("days", [-0.005, -3650, 3])
def test_a_node_with_a_wrong_clock_reaches_the_host(tmp_path: Path, days: float) -> None:
    assert greeting(certificate.security(), tmp_path, days * 86400) == "hello"


def test_dasks_own_certificate_is_refused_by_a_node_whose_clock_is_behind(tmp_path: Path) -> None:
    """This is why rlnb makes its own. Once Dask's is accepted, the module certificate can go."""
    assert "certificate is not yet valid" in greeting(Security.temporary(), tmp_path, -420.0)


def test_only_who_has_the_key_of_the_job_can_connect() -> None:
    job, other = certificate.security(), certificate.security()
    assert job.require_encryption

    async def answer(security: Security) -> str:
        async def greet(comm: object) -> None:
            await comm.write("hello")  # type: ignore[attr-defined]

        async with listen("tls://127.0.0.1", greet, **job.get_listen_args("scheduler")) as listener:
            address = listener.contact_address
            comm = await connect(address, timeout=3.0, **security.get_connection_args("worker"))
            try:
                return str(await comm.read())
            finally:
                await comm.close()

    assert asyncio.run(answer(job)) == "hello"
    with pytest.raises((OSError, CommClosedError)):
        asyncio.run(answer(other))
