"""``rnnlab kernels``: the description and the compilation."""

from rnnlab import cli, ops


def test_kernels_are_shown_and_compiled(capsys, monkeypatch):
    calls = []
    monkeypatch.setattr(ops, "warm_up", lambda: calls.append(1) or [1.23, 0.0][len(calls) - 1])
    assert cli.main(["kernels"]) == 0
    assert not calls
    shown = capsys.readouterr().out.splitlines()
    assert shown == [ops.describe(), f"GPU: {ops.describe_gpu()}"]
    for said in ("Compiled the kernels in 1.2 s.", "All kernels are in the cache."):
        assert cli.main(["kernels", "--warm-up"]) == 0
        assert capsys.readouterr().out.splitlines() == [*shown, said]
