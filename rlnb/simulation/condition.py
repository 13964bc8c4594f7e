"""The condition of a living simulator, by the messages of the simulator, its node agent and its job."""

from __future__ import annotations

import logging

from rlnb.tasks.messages import Died, Ended, Hangs, Hosted, Message, Pulse, Ready, Silent, Stacks, Usage, Waiting
from rlnb.tasks.place import place_of

logger = logging.getLogger(__name__)


class Condition:
    """The condition of a simulator.

    Args:
        job: Name of the launcher in whose job the simulator is; empty for this machine.
    """

    def __init__(self, job: str = "") -> None:
        self._job = job
        self.hosted = not job
        """Whether the node agent can be asked, which is not so while a job waits."""
        self.ready = Ready()
        """The worker's first message; its process id is 0 before."""
        self.usage = Usage()
        """The last answer about the worker's memory."""
        self.log_bytes = 0
        """Size of the worker's log."""
        self.place = ""
        """Where in the code the worker was; empty if that is not known."""
        self.reason = ""
        """Why the agent or the job has ended the worker, as a sentence; empty if it has not."""
        self.died = ""
        """How the worker has ended by itself, as a clause; empty if it has not, or if that is not known."""
        self.last_output = ""
        """End of the log of a worker on another machine that has ended."""
        self._waits = ""

    def note(self, message: Message | None) -> None:
        """Note what a message says."""
        if isinstance(message, Ready):
            self.ready = message
        elif isinstance(message, Hangs):
            self.reason = message.hangs
        elif isinstance(message, Died):
            self.died = message.died
        elif isinstance(message, Pulse):
            self.log_bytes = message.log_bytes
        elif isinstance(message, Stacks):
            self.place, self.log_bytes = place_of(message.stacks), message.end_bytes
        elif isinstance(message, Usage):
            self.usage = message
        elif isinstance(message, Waiting):
            self._waits = message.waits
        elif isinstance(message, Ended):
            self.last_output = message.ended
        elif isinstance(message, Hosted):
            self.hosted = True
        elif isinstance(message, Silent):
            logger.warning(
                "The worker is starting, but has written no output for minutes. Its log shows the stack of each "
                "thread: %s",
                message.silent,
            )

    def __str__(self) -> str:
        if not self.hosted:
            return f"the simulator's job on {self._job} waits" + (f": {self._waits}" if self._waits else "")
        place = f" in {self.place}" if self.place else ""
        return f"the simulator is {'busy' if self.ready.pid else 'starting'}{place}"
