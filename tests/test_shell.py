import shlex

import pytest

from rnnlab import shell
from rnnlab.shell import expanded, quoted


@pytest.fixture
def on_windows(monkeypatch):
    monkeypatch.setattr(shell, "_WINDOWS", True)


def test_a_shell_reads_the_words_back():
    words = ["runs/a b", "it's", "$HOME", "", "*"]
    assert shlex.split(quoted(*words)) == words


def test_windows_keeps_backslashes_and_needs_double_quotes(on_windows):
    assert quoted(r"runs\shapes") == r"runs\shapes"
    assert quoted(r"my runs\a", "b") == r'"my runs\a" b'
    assert quoted("runs/R&D", "a b|c", "") == '"runs/R&D" "a b|c" ""'


def test_a_shell_has_expanded_the_wildcards(tmp_path):
    (tmp_path / "a.jpg").touch()
    assert expanded([f"{tmp_path}/*.jpg"]) == [f"{tmp_path}/*.jpg"]


def test_windows_leaves_wildcards_to_the_program(tmp_path, on_windows):
    for name in ("b.jpg", "a.jpg", "[c].jpg", "d.png"):
        (tmp_path / name).touch()
    words = [f"{tmp_path}/?.jpg", f"{tmp_path}/[c].jpg", f"{tmp_path}/*.gif", "test"]
    assert expanded(words) == [f"{tmp_path}/a.jpg", f"{tmp_path}/b.jpg", *words[1:]]
