"""The options of a search change the captions as they say."""

from rnnlab import cli


def test_every_option_of_a_search_has_its_effect(run, capsys):
    def captions(*options):
        assert cli.main(["caption", str(run), "val", *options]) == 0
        return [line.partition(" ")[2].split() for line in capsys.readouterr().out.splitlines()]

    assert {len(words) for words in captions("--min-length", "12")} == {12}
    greedy = captions("--method", "greedy")
    assert captions("--method", "sample", "--top-k", "1") == greedy
    assert captions("--method", "sample", "--top-p", "1e-9") == greedy
    assert captions("--beam", "1") == greedy
    long = captions("--method", "greedy", "--min-length", "12", "--no-repeat-ngram", "1")
    assert all(len(set(words)) == len(words) for words in long)
    n_best = ("--beam", "4", "--n-best", "4", "--max-images", "1", "--length-penalty", "1")
    lists = [captions(*n_best, *more) for more in ((), ("--normalisation", "gnmt"))]
    assert lists[0] != lists[1]  # the scores are
