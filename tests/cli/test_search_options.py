"""The options of a search change the captions as they say."""

from argparse import Namespace

import pytest

from rnnlab import cli
from rnnlab.cli.search_options import search_options
from rnnlab.recipes.tables import DecodingTable


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", "5"], "--seed needs --method sample, found beam"),
        (["--normalisation", "gnmt"], "--normalisation needs --length-penalty above 0, found 0.0"),
        (["--diversity", "1"], "--diversity needs --groups of at least 2, found 1"),
        (["--method", "greedy", "--beam", "2"], "--beam needs --method beam, found greedy"),
    ],
)
def test_options_that_would_have_no_effect(options, message, run, capsys):
    assert cli.main(["caption", str(run), "val", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_narrow_beam_finds_fewer_sentences_than_the_recipe_asks_for():
    recipe = DecodingTable(method="beam", beam_size=4, n_best=3)
    assert search_options(recipe, Namespace(beam_size=2)).n_best == 2
    assert search_options(recipe, Namespace(beam_size=5)).n_best == 3
    assert search_options(recipe, Namespace(beam_size=5, n_best=4)).n_best == 4
    assert search_options(recipe, Namespace(method="greedy")).n_best == 1
    with pytest.raises(ValueError, match="n_best is 3, expected at most 2, beam_size"):
        search_options(recipe, Namespace(beam_size=2, n_best=3))


def test_another_method_leaves_out_the_options_of_the_recipe_s():
    recipe = DecodingTable(beam_size=4, n_best=2, num_groups=2, diversity=1.0)
    assert search_options(recipe, Namespace(temperature=0.7)) == DecodingTable("sample", temperature=0.7)
    assert search_options(recipe, Namespace(num_groups=1)) == DecodingTable(beam_size=4, n_best=2)
    assert search_options(DecodingTable("sample", top_k=3), Namespace(beam_size=5)) == DecodingTable(
        beam_size=5
    )
