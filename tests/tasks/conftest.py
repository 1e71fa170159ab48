import pytest

from rnnlab import cli


@pytest.fixture(scope="module")
def run(file, tmp_path_factory):
    """The directory of a run of the module's file, which its tests share and do not change."""
    out = tmp_path_factory.mktemp("runs") / "run"
    assert cli.main(["train", str(file), "--out", str(out), "--no-progress"]) == 0
    return out
