"""The certificate of one job, with which the host and the nodes prove to each other that they belong to it.

Dask's own is valid from the second in which it is made. A node whose clock is behind would refuse it, and never reach
the host, which would take that for a firewall. This one has begun long ago, so such a node comes, and can be named.
"""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from distributed import Security

BEGIN = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
"""Begin of the validity. The key is made for the job and deleted with it, so the dates protect nothing."""
VALID_DAYS = 3650


def security() -> Security:
    """Return the TLS settings of a job, with a new key that is held in memory only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rlnb job")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("rlnb-job")]), critical=False)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=VALID_DAYS))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    key_text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
    text = certificate.public_bytes(serialization.Encoding.PEM).decode()
    of_each_role = {
        f"tls_{role}_{part}": value
        for role in ("client", "scheduler", "worker")
        for part, value in {"key": key_text, "cert": text}.items()
    }
    return Security(require_encryption=True, tls_ca_file=text, **of_each_role)
