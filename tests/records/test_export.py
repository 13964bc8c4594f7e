"""Convert the files of an export to its result and back."""

from __future__ import annotations

from pathlib import Path

from rlnb import Result
from rlnb.records.layout import RunDir
from rlnb.records.options import ExportFile, export_files_of, export_values_of


def test_files_are_recorded_relative_to_their_run_and_found_after_it_moves(tmp_path: Path) -> None:
    run, elsewhere = RunDir(tmp_path / "runs" / "r"), RunDir(tmp_path / "archive" / "r")
    exports = [
        ExportFile(format="onnx", path=run.exports / "policy.onnx"),
        ExportFile(format="left/torchscript", path=run.exports / "left" / "policy.pt"),
    ]
    values = export_values_of(exports, run)
    assert values == {"onnx": "exports/policy.onnx", "left/torchscript": "exports/left/policy.pt"}
    result = Result(outcome="completed", values=values)
    assert export_files_of(result, run) == exports
    assert export_files_of(result, elsewhere)[0].path == elsewhere.exports / "policy.onnx"
