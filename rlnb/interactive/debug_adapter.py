"""A client of the Debug Adapter Protocol, which debugpy speaks in the simulator.

Source of the format: https://microsoft.github.io/debug-adapter-protocol/specification
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeAlias

from rlnb.errors import RlnbError

Message: TypeAlias = Mapping[str, Any]
ANSWER_S = 20.0
"""Seconds to wait for an answer of the adapter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A function call in which a stopped thread is."""

    id: int
    """Number of the frame in the protocol."""
    name: str
    """Name of the function."""
    file: str
    """File of the function's code."""
    line: int
    """Line in the file, from 1."""


class Adapter:
    """A connection to a debugger.

    Args:
        port: Port on the loopback interface.
        token: Secret that the debugger asks for; empty if it asks for none.

    Raises:
        RlnbError: Nothing answers there, or the token is wrong.
    """

    def __init__(self, port: int, token: str = "") -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S)
        except OSError as exc:
            raise RlnbError(f"The debugger of the simulator does not answer: {exc}. Run rlnb.debug again.") from exc
        self._socket.settimeout(None)
        self._numbers = itertools.count(1)
        self._answers: dict[int, Future[Message]] = {}
        self._files: set[str] = set()
        self._ready = threading.Event()
        self.stops: queue.SimpleQueue[int] = queue.SimpleQueue()
        """Ids of the threads that have stopped."""
        threading.Thread(target=self._read, daemon=True, name="debug adapter").start()
        try:
            self._attach(token)
        except BaseException:  # an open connection would keep the debugger from the next one
            self._end()
            raise

    def _attach(self, token: str) -> None:
        if token:
            self._call("pydevdAuthorize", debugServerAccessToken=token)
        self._call("initialize", adapterID="rlnb", pathFormat="path", linesStartAt1=True, columnsStartAt1=True)
        attached = self._send("attach", justMyCode=False)
        if not self._ready.wait(ANSWER_S):
            raise RlnbError("The debugger of the simulator does not answer. Run rlnb.debug again.")
        self._call("configurationDone")
        self._body("attach", attached)

    def set_lines(self, file: str, lines: Mapping[int, str]) -> list[str]:
        """Set the breakpoints of a file, in place of those that it has.

        Args:
            file: Path of the file.
            lines: Condition of each line, an expression or an empty text.

        Returns:
            The reason for each line at which no breakpoint is possible.
        """
        self._files.add(file)
        wanted = [{"line": line, **({"condition": text} if text else {})} for line, text in lines.items()]
        answer = self._call("setBreakpoints", source={"path": file}, breakpoints=wanted)
        return [str(found.get("message", "refused")) for found in answer["breakpoints"] if not found.get("verified")]

    def set_functions(self, names: Sequence[str]) -> None:
        """Set breakpoints at the begin of functions, in place of the present ones."""
        self._call("setFunctionBreakpoints", breakpoints=[{"name": name} for name in names])

    def clear(self) -> None:
        """Remove all breakpoints."""
        for file in self._files:
            self.set_lines(file, {})
        self.set_functions(())

    def frames(self, thread: int) -> list[Frame]:
        """Return the calls in which a stopped thread is, the innermost first."""
        answer = self._call("stackTrace", threadId=thread)
        return [
            Frame(
                id=frame["id"],
                name=frame["name"],
                file=(frame.get("source") or {}).get("path", ""),
                line=frame["line"],
            )
            for frame in answer["stackFrames"]
        ]

    def variables(self, frame: int) -> dict[str, str]:
        """Return the local variables of a frame as text, by name."""
        scopes = self._call("scopes", frameId=frame)["scopes"]
        found: Iterator[Message] = itertools.chain.from_iterable(
            self._call("variables", variablesReference=scope["variablesReference"])["variables"]
            for scope in scopes
            if scope["name"] == "Locals"
        )
        return {item["name"]: item["value"] for item in found if not item["name"].endswith(" variables")}

    def evaluate(self, frame: int, expression: str) -> str:
        """Return the value of an expression in a frame, as text.

        Raises:
            RlnbError: The expression fails.
        """
        return str(self._call("evaluate", expression=expression, frameId=frame, context="repl")["result"])

    def go_on(self, thread: int, how: str) -> None:
        """Let a stopped thread go on.

        Args:
            thread: Id of the thread.
            how: ``"continue"``, ``"next"``, ``"stepIn"`` or ``"stepOut"``.
        """
        self._call(how, threadId=thread)

    def close(self) -> None:
        """End the connection, which removes all breakpoints and lets a stopped thread go on."""
        with contextlib.suppress(OSError, RlnbError):  # the simulator has ended
            self.clear()
            self._call("disconnect", terminateDebuggee=False)
        self._end()

    def _end(self) -> None:
        """End the connection, and the thread that reads from it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _call(self, command: str, **arguments: Any) -> Message:
        return self._body(command, self._send(command, **arguments))

    def _send(self, command: str, **arguments: Any) -> Future[Message]:
        number, answer = next(self._numbers), Future[Message]()
        self._answers[number] = answer
        message = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        try:
            self._socket.sendall(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except OSError as exc:
            raise RlnbError(f"The debugger of the simulator does not answer: {exc}. Run rlnb.debug again.") from exc
        return answer

    def _body(self, command: str, answer: Future[Message]) -> Message:
        try:
            message = answer.result(ANSWER_S)
        except TimeoutError as exc:
            raise RlnbError(f"The debugger has not answered {command!r} for {ANSWER_S:.0f} s.") from exc
        if not message.get("success"):
            raise RlnbError(f"The debugger refuses {command!r}: {message.get('message', 'no reason given')}")
        return message.get("body") or {}

    def _read(self) -> None:
        with self._socket.makefile("rb") as stream:
            for message in _messages(stream):
                if message["type"] == "response":
                    self._answers.pop(message["request_seq"]).set_result(message)
                elif message.get("event") == "initialized":
                    self._ready.set()
                elif message.get("event") == "stopped":
                    self._stopped(message["body"])
        for answer in [*self._answers.values()]:
            answer.set_result({"message": "the simulator ended"})

    def _stopped(self, body: Message) -> None:
        """Tell of a stop; but go from the head of a function, where none of its variables exist, to its first line."""
        if body.get("reason") == "function breakpoint":
            with contextlib.suppress(RlnbError):  # the connection has ended
                self._send("next", threadId=body["threadId"])
        else:
            self.stops.put(body["threadId"])


def _messages(stream: BinaryIO) -> Iterator[Message]:
    """Yield the messages of a stream until it ends."""
    while True:
        try:
            header = [*iter(lambda: stream.readline().strip(), b"")]
            if not header:
                return
            length = next(int(line.partition(b":")[2]) for line in header if line.lower().startswith(b"content-length"))
            yield json.loads(stream.read(length))
        except (OSError, ValueError):  # the socket was closed
            return
