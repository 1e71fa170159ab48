"""What the documents point to exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(path.relative_to(ROOT) for path in ROOT.glob("*.md")) + sorted(
    path.relative_to(ROOT) for folder in ("benchmarks", "datasets") for path in (ROOT / folder).glob("*.md")
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document):
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    missing = [link for link in links if not ((ROOT / document).parent / link).exists()]
    assert missing == []


def test_the_readme_is_among_them():
    assert Path("README.md") in DOCUMENTS
