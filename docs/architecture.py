"""Draw docs/architecture.svg: the packages of rnnlab, from the import contract in pyproject.toml.

    python docs/architecture.py

A package imports only packages of the rows below it. The words are the first sentences of the packages'
docstrings.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).with_suffix(".svg")
WIDTH, GAP, MARGIN = 900, 10, 12
NAME, LINE = 30, 14  # the height of a name and of a line of words
STYLE = """
    rect { fill: #f4f6fb; stroke: #8aa0c8; }
    text { font-family: system-ui, sans-serif; fill: #1c2a44; }
    .name { font-size: 15px; font-weight: 600; }
    .words { font-size: 11.5px; }
"""


def rows() -> list[list[str]]:
    """The packages of each row, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    return [[name.strip() for name in row.split("|")] for row in contract["layers"]]


def words(package: str) -> str:
    """The first sentence of a package's docstring."""
    path = ROOT / "rnnlab" / package
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n\n")[0].replace("\n", " ").replace("``", "").rstrip(".:")


def picture() -> str:
    """The SVG."""
    lines: list[str] = []
    top = MARGIN
    for packages in rows():
        box = (WIDTH - 2 * MARGIN - GAP * (len(packages) - 1)) / len(packages)
        texts = [textwrap.wrap(words(package), int(box / 5.9)) for package in packages]
        height = NAME + LINE * max(map(len, texts))
        for column, (package, text) in enumerate(zip(packages, texts, strict=True)):
            left = MARGIN + column * (box + GAP)
            x = f'x="{left + box / 2:.0f}" text-anchor="middle"'
            lines.append(f'  <rect x="{left:.0f}" y="{top}" width="{box:.0f}" height="{height}" rx="7"/>')
            lines.append(f'  <text class="name" {x} y="{top + 20}">{package}</text>')
            lines += [
                f'  <text class="words" {x} y="{top + NAME + 6 + LINE * line}">{escape(part)}</text>'
                for line, part in enumerate(text)
            ]
        top += height + GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - GAP + MARGIN}" role="img" '
        'aria-label="The packages of rnnlab. Each imports only packages of the rows below it.">',
        f"  <style>{STYLE}  </style>",
    ]
    return "\n".join([*head, *lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
