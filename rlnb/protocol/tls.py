"""TLS between a kernel and its warm simulator in a job, with the job's own certificate on both sides.

A job has one file with a certificate and its key, which only its user can read. Each side presents that certificate,
and accepts no other, so a process without the file can neither connect nor answer.
"""

from __future__ import annotations

import datetime
import os
import socket
import ssl
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.storage import entries

SILENT_S, ASK_EVERY_S, ASK_TIMES = 3, 2, 3
"""TCP asks a silent peer after some seconds, then again and again; a machine that is gone is noticed within 9 s."""


def context(key: Path, *, server: bool) -> ssl.SSLContext:
    """Return the TLS settings of one side.

    Args:
        key: File with the job's certificate and its key, as PEM.
        server: Whether this side accepts connections.

    Raises:
        OSError: The file cannot be read, holds no certificate with its key, or is not private to this user.
    """
    if (status := key.stat()).st_uid != os.getuid() or status.st_mode & 0o077:
        found = f"owner {status.st_uid}, mode {status.st_mode & 0o777:o}"
        fix = "Use a root on a file system that keeps owners and modes."
        raise PermissionError(f"{key} is not a file that only this user can read ({found}). {fix}")
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    settings.minimum_version = ssl.TLSVersion.TLSv1_3
    settings.check_hostname = False  # a node has several names; the certificate itself is what counts
    settings.verify_mode = ssl.CERT_REQUIRED
    settings.load_cert_chain(key)
    settings.load_verify_locations(key)
    return settings


def watch(connection: socket.socket) -> None:
    """Let TCP notice a peer whose machine is gone."""
    options = {
        "TCP_NODELAY": 1,
        "TCP_KEEPIDLE": SILENT_S,
        "TCP_KEEPINTVL": ASK_EVERY_S,
        "TCP_KEEPCNT": ASK_TIMES,
        "TCP_USER_TIMEOUT": 1000 * (SILENT_S + ASK_EVERY_S * ASK_TIMES),  # for what is sent to a dead peer
    }
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        if hasattr(socket, name):  # macOS and Windows, where a kernel may run, have some of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


# -- the certificate -------------------------------------------------------------------------------------------------


VALID_FROM, VALID_DAYS = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC), 3650
"""Begin of the validity, and the number of days from now to its end. The clocks of two machines may differ by any time,
and the key is deleted with its job, so the dates protect nothing."""


def write_key(path: Path) -> None:
    """Write a new certificate and its key to a file that only this user can read.

    Raises:
        RlnbError: The package ``cryptography`` is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as exc:
        fix = "Install it: pip install cryptography"
        raise RlnbError(f"A simulator in a job needs the package cryptography for its key. {fix}") from exc
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rlnb warm simulator")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(VALID_FROM)
        .not_valid_after(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    with entries.open_to_add(path, anew=True, mode=0o600) as file:
        file.write(text + certificate.public_bytes(serialization.Encoding.PEM))
