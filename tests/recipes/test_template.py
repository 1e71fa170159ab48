from __future__ import annotations

import dataclasses
import re
import tomllib
from itertools import pairwise

import pytest

from rnnlab.recipes.recipe import CaptioningRecipe, kinds_of, recipe_from_dict
from rnnlab.recipes.schema import RecipeError
from rnnlab.recipes.stages import LossWeights
from rnnlab.recipes.template import kinds, template


@pytest.mark.parametrize("kind", kinds())
def test_a_template_is_a_recipe_of_all_defaults(kind):
    tables = tomllib.loads(template(kind))
    recipe = recipe_from_dict(tables)
    required = {key: value for key, value in tables["data"].items() if value == "PATH"}
    assert recipe == recipe_from_dict({"data": required | {"kind": kind}})
    for name, table in tables.items():
        keys = {field.name for field in dataclasses.fields(getattr(recipe, name))} - set(recipe.REFUSED)
        assert set(table) == keys, name
    assert next(iter(tables)) == "data"


@pytest.mark.parametrize("kind", kinds())
def test_every_key_is_explained(kind):
    lines = template(kind).splitlines()
    for before, line in pairwise(lines):
        if line.startswith("# Expected"):
            assert before.startswith("# "), f"no help above {line}"
        if "=" in line and not line.startswith(("#", "kind =")):
            assert before.startswith("# "), line
        assert len(line) <= 110
    assert ":class:" not in template(kind)


def test_help_and_expectation():
    text = template("shapes")
    assert (
        "# Probability of dropping an element of a word vector. Expected: a probability in [0, 1).\n"
        "word_dropout = 0.0\n"
    ) in text
    assert "# The update rule: a built-in one" in text
    assert "with adam it is AdamW. A number" in " ".join(text.replace("\n#", "").split())
    assert "regularisation.zoneout_h = 0.0" in text


@pytest.mark.parametrize("kind", kinds())
def test_the_values_in_the_help_are_toml(kind):
    text = " ".join(line.removeprefix("# ") for line in template(kind).splitlines())
    assert not re.search(r"\b(None|True|False|MODES)\b", text)
    examples = re.findall(r"\{.*?\}", text)
    assert '{ name = "exponential", decay = 0.95 }' in examples
    assert '{ W_embed = 0, "*W*" = 1e-4 }' in examples
    for example in examples:
        table = tomllib.loads(f"key = {example}")["key"]
        assert "name" in table or "W_embed" in table


def test_none_in_the_help_is_the_value_of_toml():
    text = template("shapes")
    assert '# Score of the attention to the L regions of the image, or "none" for no attention.' in text


def test_keys_of_one_kind_have_help_of_their_own():
    text = " ".join(line.removeprefix("# ") for line in template("shapes").splitlines())
    assert "Probability that a unit of the hidden state keeps its value." in text
    assert "Probability that a unit of an LSTM's cell state keeps its value." in text


def test_the_keys_of_a_stage_are_named_at_the_end():
    words = " ".join(
        line.removeprefix("# ") for line in template("shapes").rpartition("\n\n")[2].splitlines()
    )
    for key in ("optim_config", "trains", "losses.label_smoothing", "self_critical.samples"):
        assert f" {key}" in words
    assert "checkpoint_every" not in words  # is of all stages


@pytest.mark.parametrize("kind", kinds())
def test_keys_that_a_kind_refuses_are_not_named(kind):
    tables = tomllib.loads(template(kind))
    named = {word.strip(",.") for word in template(kind).rpartition("\n\n")[2].split()}
    for loss in dataclasses.fields(LossWeights):
        assert (f"losses.{loss.name}" in named) == (loss.name in tables["model"])
    assert ("self_critical.samples" in named) == (kind in kinds_of(CaptioningRecipe))
    assert ("scheduled_sampling" in named) == ("scheduled_sampling" in tables["training"])
    for key, value in (("scheduled_sampling", {"name": "constant", "value": 0.1}), ("self_critical", {})):
        if key not in {name.partition(".")[0] for name in named}:
            with pytest.raises(RecipeError, match=f"stage.1.{key} is for models that"):
                recipe_from_dict(tables | {"stage": [{key: value}]})
    if "scheduled_sampling" in named:
        recipe_from_dict(tables | {"stage": [{"scheduled_sampling": {"name": "constant", "value": 0.1}}]})


def test_an_unknown_kind():
    with pytest.raises(RecipeError, match="kind is 'shape'; did you mean shapes?"):
        template("shape")
