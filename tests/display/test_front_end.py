import os
import subprocess
import sys

import nbformat

from rlnb.display import front_end

ASK = "from rlnb.display import front_end\nprint('live', front_end.is_live())"
STARTED_FROM_A_NOTEBOOK = {"JPY_SESSION_NAME": "other.ipynb"}


def printed(path):
    return nbformat.read(path, as_version=4).cells[0].outputs[0].text.strip()


def run(*argv):
    subprocess.run([sys.executable, "-m", *argv], check=True, env={**os.environ, **STARTED_FROM_A_NOTEBOOK})


def test_a_cell_of_a_front_end_is_live(kernel):
    assert kernel.run(ASK, cell="cell-1").strip() == "live True"


def test_code_without_a_cell_is_not_live(kernel):
    assert kernel.run(ASK, cell="").strip() == "live False"


def test_papermill_is_not_live_even_when_started_from_a_notebook(notebook, tmp_path):
    run("papermill", str(notebook(ASK)), str(tmp_path / "out.ipynb"), "--no-progress-bar")
    assert printed(tmp_path / "out.ipynb") == "live False"


def test_nbconvert_is_not_live(notebook, tmp_path):
    argv = ("--execute", "--to", "notebook", "--output", str(tmp_path / "out.ipynb"), str(notebook(ASK)))
    run("nbconvert", *argv)
    assert printed(tmp_path / "out.ipynb") == "live False"


def test_plain_python_is_not_live():
    assert not front_end.is_live()
