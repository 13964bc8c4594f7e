"""``python -m rlnb_dask.arrays FOLDER``: the host of an array."""

import logging
import os
import sys
from pathlib import Path

from rlnb_dask.arrays.folder import ArrayFolder
from rlnb_dask.arrays.host import ArrayHost
from rlnb_dask.own_job import forget_own_job


def main() -> None:
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("rlnb_dask").setLevel(logging.INFO)
    forget_own_job(os.environ)
    ArrayHost(ArrayFolder(Path(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
