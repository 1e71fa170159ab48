"""The links of every document lead somewhere, and its Python runs."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rnnlab.layers.recurrent import cell
from rnnlab.recipes.shipped import names
from rnnlab.training.optim import UPDATE_RULES
from rnnlab.training.schedules import SCHEDULES

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (".", "docs", "benchmarks", "datasets")
DOCUMENTS = sorted(path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
RECIPES = sorted(path.relative_to(ROOT) for path in (ROOT / "rnnlab" / "recipes" / "files").glob("*.toml"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TESTS = re.compile(r"\bpytest (?:-[^`#\n]*)?tests/[^`#\n]*")  # a command of pytest that names files
COMMAND = re.compile(  # a command line of a shell, also in the comment that begins a recipe
    r"^(?:# )? *(?:\$ )?(?:\w+=\S+ +)*"
    r"(?:bash|cd|compute-sanitizer|export|git|jupyter|lint-imports|mpirun|mypy|nbgrader|pip|pre-commit|py|"
    r"pytest|python3?|rnnlab|ruff|source|sphinx-build|srun|unzip|wget) +(?![ =])(?:.*\\\n)*.*$",
    re.MULTILINE,
)


def read(document: Path) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def python_blocks(document: Path) -> list[str]:
    """The Python of a document, each block padded so that an error names the line of the document."""
    text = read(document)
    return [
        "\n" * text.count("\n", 0, found.start(2)) + found[2]
        for found in FENCE.finditer(text)
        if found[1] == "python"
    ]


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", read(document)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def section(document: Path, heading: str) -> str:
    """What is under a heading of the second level."""
    return read(document).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def links(document: Path) -> list[str]:
    """The targets of a document's links that lie in the repository."""
    return [link for link in re.findall(r"\]\(([^)]+)\)", read(document)) if "://" not in link]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_to_files_and_headings(document):
    missing = []
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = (ROOT / document).parent / path if path else ROOT / document
        if not target.exists() or (anchor and anchor not in anchors(target.resolve().relative_to(ROOT))):
            missing.append(link)
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("document", [path for path in DOCUMENTS if python_blocks(path)], ids=str)
def test_python_runs(document, monkeypatch, tmp_path):
    """From top to bottom in one namespace, in an empty directory; names that it registers are forgotten."""
    for registry in (UPDATE_RULES, SCHEDULES):
        monkeypatch.setattr(registry, "_classes", dict(registry._classes))
    monkeypatch.setattr(cell, "_CELLS", dict(cell._CELLS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python_blocks(document):
        exec(compile(block, str(document), "exec", dont_inherit=True), namespace)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", sorted({found.strip() for each in DOCUMENTS for found in TESTS.findall(read(each))})
)
def test_commands_of_pytest_select_tests(command):
    words = [sys.executable, "-m", *shlex.split(command), "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-500:]


@pytest.mark.parametrize("document", DOCUMENTS + RECIPES, ids=str)
def test_command_lines_have_no_comments(document):
    """In zsh a comment on an interactive command line is an error, and cmd.exe has no comments."""
    text = FENCE.sub(lambda found: "" if found[1] in ("python", "toml") else found[0], read(document))
    assert [found[0] for found in COMMAND.finditer(text) if " #" in found[0]] == []


@pytest.mark.parametrize(
    "text",
    [
        '    pip install -e ".[serve]"      # Gradio\n',
        "```sh\n$ RNNLAB_DATA=data rnnlab train shapes # train\n```\n",
        "    rnnlab train shapes \\\n        --epochs 3  # three epochs\n",
        "#     rnnlab train shapes    # a minute\n",
    ],
)
def test_a_comment_on_a_command_line_is_found(text, tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(f"```python\nsource = 1  # no command\n```\n\n{text}")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    with pytest.raises(AssertionError, match="#"):
        test_command_lines_have_no_comments(Path("page.md"))


def test_the_readme_is_short():
    assert len(read(Path("README.md")).split()) < 900


@pytest.mark.parametrize(
    ("document", "heading"),
    [("README.md", "How fast"), ("docs/speed.md", "How fast"), ("docs/speed.md", "Products in bfloat16")],
)
def test_ratios_are_those_of_the_benchmarks(document, heading):
    quoted = re.findall(r"\b\d+\.\d\d\b", section(Path(document), heading))
    assert quoted
    assert set(quoted) <= set(re.findall(r"\b\d+\.\d\d\b", read(Path("benchmarks/README.md"))))


@pytest.mark.parametrize("document", ["README.md", "docs/results.md"])
def test_scores_are_those_of_the_tables(document):
    tables = re.findall(r"\b\d+\.\d+\b", read(Path("benchmarks/papers.md")))
    rows = re.findall(
        r"^\|.*\|(.*)\| `python -m benchmarks\.papers .*\|$", read(Path(document)), re.MULTILINE
    )
    quoted = [number for scores in rows for number in re.findall(r"\b\d+\.\d+\b", scores)]
    assert len(rows) > 2
    assert [number for number in quoted if not any(is_rounding(number, exact) for exact in tables)] == []


def is_rounding(number: str, exact: str) -> bool:
    """Whether a number is another one, or that one with fewer digits."""
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return abs(float(number) - float(exact)) <= half * (number != exact) + 1e-9


def test_ci_runs_the_test_command_of_the_readme():
    command = re.search(
        r"^Run the tests:\n\n    pip install -e (\S+) && (.*)$", read(Path("README.md")), re.MULTILINE
    )
    assert command, "the README has no test command"
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    install = re.search(r"^python -m pip install .*$", ci, re.MULTILINE)
    assert install
    assert command[1] in install[0]
    assert re.search(rf"^step {re.escape(command[2])} ", ci, re.MULTILINE)


def test_the_index_names_every_page():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md", "index.md"}
    assert pages <= set(links(Path("docs/README.md")))


def test_a_dead_link_is_found(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(
        "# A heading: one\n[here](#a-heading-one) [there](page.md#two) [gone](gone.md)"
    )
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert anchors(Path("page.md")) == {"a-heading-one"}
    with pytest.raises(AssertionError, match="gone.md"):
        test_links_lead_to_files_and_headings(Path("page.md"))


def test_the_picture_of_the_packages_is_that_of_the_import_contracts():
    architecture = runpy.run_path(str(ROOT / "docs" / "architecture.py"))
    assert read(Path("docs/architecture.svg")) == architecture["picture"](), "run python docs/architecture.py"


def test_every_recipe_is_listed():
    listed = set(re.findall(r"`([a-z0-9_]+)`", read(Path("docs/recipes.md")).partition("## The recipes")[2]))
    assert set(names()) <= listed
