"""The JupyterLab extension for rlnb runs: the entry points of its half in the server and of its half in the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from rlnb_jupyterlab.app import RlnbExtension

__version__ = "0.1.0"


class ExtensionPoint(TypedDict):
    """A server extension, as Jupyter reads it."""

    module: str
    app: type[RlnbExtension]


def _jupyter_server_extension_points() -> list[ExtensionPoint]:
    from rlnb_jupyterlab.app import RlnbExtension

    return [{"module": "rlnb_jupyterlab", "app": RlnbExtension}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "rlnb-jupyterlab"}]
