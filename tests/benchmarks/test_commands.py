"""What the commands share."""

import json

import pytest

from benchmarks.commands import add_outputs, parse, parser_of, write_json


@pytest.fixture
def parser():
    parser = parser_of("speed", "One line.\n\n    another line\n")
    add_outputs(parser, "the table")
    return parser


def test_the_description_keeps_its_lines(parser):
    text = parser.format_help()
    assert text.startswith("usage: python -m benchmarks speed ")
    assert "One line.\n\n    another line\n" in text
    assert "--json FILE  write the table" in text
    assert parser_of("", "").prog == "python -m benchmarks"


def test_results_are_written_where_they_are_asked_for(parser, tmp_path):
    file = tmp_path / "a new folder" / "results.json"
    options = parse(parser, ["--json", str(file)])
    assert not file.exists()
    write_json(options, [{"N": 1}])
    assert json.loads(file.read_text()) == [{"N": 1}]
    write_json(parse(parser, ["--markdown"]), [])
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_cannot_be_written(parser, tmp_path, capsys):
    with pytest.raises(SystemExit):
        parse(parser, ["--json", str(tmp_path)])
    assert f"--json {tmp_path} cannot be written" in capsys.readouterr().err
