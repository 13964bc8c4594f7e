"""JupyterLab's panel of rlnb's runs: the part in the server, and where the part in the page is."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from rlnb_jupyterlab.app import RlnbExtension

    return [{"module": "rlnb_jupyterlab", "app": RlnbExtension}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "rlnb-jupyterlab"}]
