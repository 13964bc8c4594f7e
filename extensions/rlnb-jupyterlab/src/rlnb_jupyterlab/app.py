"""The server extension: its settings, the objects that its handlers share, and the handlers."""

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
    """The extension. ``c.RlnbExtension.roots = ["/data/rl"]`` sets the roots; pages can reach runs in these only."""

    name = "rlnb"
    extension_url = "/lab"
    roots: List[str] = List(
        Unicode(), help="Roots of the runs. Default: RLNB_ROOT, or rlnb-runs in the server's folder."
    ).tag(config=True)

    @default("roots")
    def _roots(self) -> list[str]:
        folder = self.serverapp.root_dir if self.serverapp else "."
        return [os.environ.get("RLNB_ROOT") or str(Path(folder) / "rlnb-runs")]

    def initialize_settings(self) -> None:
        """Make the objects that the handlers share. The runs are read once; further work waits for the first page."""
        rlnb.options.warm = False  # the server keeps no warm simulator
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
        """Add the extension's handlers."""
        self.handlers.extend(handlers.ROUTES)

    async def stop_extension(self) -> None:
        """End the threads and processes that were started for this server."""
        self.settings["rlnb_watcher"].stop()
        await self.settings["rlnb_actions"].stop()
        await self.settings["rlnb_choices"].stop()
        self.settings["rlnb_open_pages"].close()
