"""The tables of the faults in docs/reliability.md."""

import pytest

from . import __main__ as command
from .soak import Used


@pytest.mark.parametrize("name", command.TABLES)
def test_a_table_is_written_between_its_marks(name, tmp_path, monkeypatch):
    page = command._PAGE.read_text(encoding="utf-8")
    copy = tmp_path / "page.md"
    copy.write_text(page, encoding="utf-8")
    monkeypatch.setattr(command, "_PAGE", copy)
    command.write(name, ["| \\1 |", "|---|"])
    before, after = page.split(f"<!-- {name} -->\n")[0], page.split(f"<!-- end of {name} -->")[1]
    table = f"<!-- {name} -->\n| \\1 |\n|---|\n<!-- end of {name} -->"
    assert copy.read_text(encoding="utf-8") == before + table + after


def test_steps_that_are_stopped_early_make_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(
        command, "soak", lambda table, folder, steps: [Used(0, 1.0, 3, 1), Used(20, 1.0, 3, 1)]
    )
    with pytest.raises(SystemExit, match="stopped after 20 of 40 steps"):
        list(command.steps({}, tmp_path, share=1e-4))
