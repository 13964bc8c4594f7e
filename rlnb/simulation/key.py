"""The certificate of a job with a living simulator, made for this one job."""

from __future__ import annotations

import datetime
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.storage import entries

BEGIN, VALID_DAYS = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC), 3650
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
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rlnb living simulator")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    with entries.open_to_add(path, anew=True, mode=0o600) as file:
        file.write(text + certificate.public_bytes(serialization.Encoding.PEM))
