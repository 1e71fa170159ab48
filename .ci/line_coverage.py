"""Fail if the line coverage of a package is too low: line_coverage.py COVERAGE.json PERCENT PACKAGE..."""

import json
import sys
from pathlib import Path, PurePath

report, minimum, *packages = sys.argv[1:]
files = json.loads(Path(report).read_text(encoding="utf-8"))["files"]
failures = []
for package in packages:
    summaries = [
        file["summary"] for name, file in files.items() if PurePath(name).is_relative_to(f"rnnlab/{package}")
    ]
    lines = sum(summary["num_statements"] for summary in summaries)
    covered = sum(summary["covered_lines"] for summary in summaries)
    if 100 * covered < float(minimum) * lines or not lines:
        failures.append(f"rnnlab/{package}: {covered} of {lines} lines are covered, expected {minimum} %")
sys.exit("\n".join(failures) or 0)
