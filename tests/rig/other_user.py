"""Ask a server on loopback as another user of this machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

OTHER_UID = 65_534
ASK = """
import os, socket, sys
"localhost".encode("idna")  # another user may not read where Python is installed
os.setuid(int(sys.argv[2]))
asked = socket.create_connection((sys.argv[3], int(sys.argv[1])), timeout=10)
asked.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
if sys.argv[4] == "leave":
    asked.close()
    sys.exit()
try:
    print(asked.recv(100)[:4].decode())
except ConnectionResetError:
    print()
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def answer(port: int, uid: int, host: str = "127.0.0.1", then: str = "wait") -> str:
    """Return the first letters of what a server answers to a process of a user."""
    argv = [sys.executable, "-c", ASK, str(port), str(uid), host, then]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
