"""The certificate of a job with a living simulator, made for this one job."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from rlnb.errors import RlnbError

VALID_DAYS = 30
"""Days for which a certificate is valid. The clocks of two machines may differ, so it begins a day earlier."""


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
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rlnb living simulator")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text + certificate.public_bytes(serialization.Encoding.PEM))
