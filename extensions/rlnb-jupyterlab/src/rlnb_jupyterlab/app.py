"""The server extension: its settings, what it keeps, and where its handlers are."""

from __future__ import annotations

import os
from pathlib import Path

from jupyter_server.extension.application import ExtensionApp
from traitlets import List, Unicode, default

import rlnb
from rlnb_jupyterlab import handlers
from rlnb_jupyterlab.actions import Actions
from rlnb_jupyterlab.cameras import Cameras
from rlnb_jupyterlab.choices import Choices
from rlnb_jupyterlab.open_pages import OpenPages
from rlnb_jupyterlab.pages import Pages
from rlnb_jupyterlab.readers import Readers
from rlnb_jupyterlab.watcher import Watcher


class RlnbExtension(ExtensionApp):
    """``c.RlnbExtension.roots = ["/data/rl"]`` says whose runs the panel shows; no other can be reached."""

    name = "rlnb"
    extension_url = "/lab"
    roots: List[str] = List(Unicode(), help="rlnb roots; RLNB_ROOT, else rlnb-runs in the server's folder.").tag(
        config=True
    )

    @default("roots")
    def _roots(self) -> list[str]:
        folder = self.serverapp.root_dir if self.serverapp else "."
        return [os.environ.get("RLNB_ROOT") or str(Path(folder) / "rlnb-runs")]

    def initialize_settings(self) -> None:
        """Make what the handlers share; past one look at the runs, nothing works before somebody looks."""
        rlnb.options.warm = False  # no simulator goes on living in the server
        pages = Pages()
        watcher = Watcher([Path(root).expanduser() for root in self.roots], pages)
        watcher.prepare()
        self.settings["rlnb_watcher"] = watcher
        self.settings["rlnb_pages"] = pages
        self.settings["rlnb_actions"] = Actions(pages)
        self.settings["rlnb_open_pages"] = OpenPages()
        self.settings["rlnb_cameras"] = Cameras()
        self.settings["rlnb_readers"] = Readers()
        self.settings["rlnb_choices"] = Choices(watcher.roots[0])

    def initialize_handlers(self) -> None:
        """Add them."""
        self.handlers.extend(handlers.ROUTES)

    async def stop_extension(self) -> None:
        """End what was started for this server."""
        self.settings["rlnb_watcher"].stop()
        await self.settings["rlnb_actions"].stop()
        await self.settings["rlnb_choices"].stop()
        self.settings["rlnb_open_pages"].close()
