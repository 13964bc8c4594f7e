"""A kernel whose shell has the class of another front end's kernel: ``python other_shell.py CLASS -f FILE``.

The classes have the names and the base class of Colab's (``google/colab/_shell.py``), Spyder's
(``spyder_kernels/console/shell.py``) and Databricks' shells, which need their own front
ends.
"""

from __future__ import annotations

import sys

from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell

METADATA = {
    "Shell": {"colab": {"cell_id": "XU0o_w7y2BQa"}},
    "SpyderShell": {},
    "DatabricksShell": {},
    "UnknownShell": {"trusted": True},
}
"""The metadata that each front end's requests have, as far as public sources show it."""
VS_CODE = {"cellId": "vscode-notebook-cell:/home/ann/train.ipynb#W2sZmlsZQ%3D%3D", "collapsed": False}
"""The metadata of a request of VS Code: the cell's URI, and the cell's own metadata."""
JUPYTERLAB = {"deletedCells": [], "recordTiming": False, "cellId": "1e9aac6b-cee9-4786-813b-df30c0debc38"}
"""The metadata of a request of JupyterLab and of Notebook 7."""


def main(name: str) -> None:
    """Start a kernel with a shell of this class."""
    shell = type(name, (ZMQInteractiveShell,), {"__doc__": "A shell of another front end."})
    kernel = type("Kernel", (IPythonKernel,), {"_shell_class_default": lambda self: shell, "shell_class": shell})
    IPKernelApp.launch_instance(kernel_class=kernel)


if __name__ == "__main__":
    main(sys.argv.pop(1))
