"""Servers of other packages, such as TensorBoard: on the loopback interface, shown in a cell, ended with the kernel."""

from __future__ import annotations

import contextlib
import functools
import html
import queue
import re
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from rlnb.display import front_end
from rlnb.display.live_objects import live_objects
from rlnb.errors import RlnbError, require_linux

HEIGHT_PX = 800
_START_S = 60.0
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/")


class Sidecar:
    """A server on this machine's loopback interface. It runs until it is closed or this kernel ends in any way."""

    def __init__(self, title: str, argv: Sequence[str]) -> None:
        """Start the server and wait for the address that it prints.

        Args:
            title: Displayed name.
            argv: Command of the server, which must listen on 127.0.0.1.

        Raises:
            RlnbError: The server does not start. The error contains its last lines of output.
        """
        require_linux(title)
        self._title = title
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rlnb.node", "--sidecar", *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt of a cell must not reach the server
        )
        assert self._process.stderr is not None
        live_objects.add(self, close=self.close, alive=lambda: self.alive)
        lines: deque[str] = deque(maxlen=20)
        ports: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        output = self._process.stderr
        threading.Thread(target=_listen, args=(output, lines, ports), name=f"rlnb {title}", daemon=True).start()
        deadline = time.monotonic() + _START_S
        try:
            port = ports.get(timeout=_START_S)
        except queue.Empty:
            port = None
        if port is None or not self._answers(port, deadline):
            self.close()
            raise RlnbError(f"{title} did not start. Its last lines of output:\n  " + "\n  ".join(lines))
        self.port = port
        """Port on this machine's loopback interface."""

    def _answers(self, port: int, deadline: float) -> bool:
        """Wait until the server listens, because some servers print their address earlier."""
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
                return True
            time.sleep(0.05)
        return False

    @property
    def url(self) -> str:
        """Address of the server for a browser on this machine."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def alive(self) -> bool:
        """Whether the server is still running."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the server."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def __repr__(self) -> str:
        return f"{self._title} ({self.url if self.alive else 'ended'})"


def _listen(output: IO[str], lines: deque[str], ports: queue.SimpleQueue[int | None]) -> None:
    """Keep the last lines of a server's output, and put its port on the queue, then None when the output ends."""
    for line in output:
        lines.append(line.rstrip())
        if address := _ADDRESS.search(line):
            ports.put(int(address.group(1)))
    ports.put(None)


class Framed(Sidecar):
    """A server whose pages use relative URLs, so that the browser can reach it through the Jupyter server."""

    def _repr_mimebundle_(self, **_: Any) -> Any:

        return frame(repr(self), self.port, self._title, alive=self.alive, height_px=HEIGHT_PX)


# -- the frame around a server ---------------------------------------------------------------------------------------


def frame(description: str, port: int, title: str, *, alive: bool, height_px: int) -> Any:
    """Return the mime bundle of a server: a widget in a notebook; a line of text in a report or after its end.

    Args:
        description: Description of the server in one line.
        port: Port of the server on the loopback interface of the kernel's machine.
        title: Text of the link.
        alive: Whether the server still runs.
        height_px: Height of the frame, in pixels.
    """
    text = html.escape(description)
    if not (alive and front_end.is_live()):
        return {"text/plain": description, "text/html": text}
    bundle = _widget()(port=port, title=title, height=height_px)._repr_mimebundle_()
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    return {**data, "text/plain": description, "text/html": f"{text}: ended with its kernel."}, metadata


@functools.cache
def _widget() -> type:
    import anywidget
    import traitlets

    class Frame(anywidget.AnyWidget):
        """A frame that shows a port of the kernel's machine."""

        _esm = Path(__file__).with_name("frame.js").read_text(encoding="utf-8")
        port = traitlets.Int().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        height = traitlets.Int().tag(sync=True)

    return Frame
