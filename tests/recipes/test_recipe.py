import json

import pytest

from rnnlab.metrics import METRICS
from rnnlab.recipes.recipe import (
    ClassificationRecipe,
    LanguageRecipe,
    TranslationRecipe,
    load_recipe,
    recipe_from_dict,
)
from rnnlab.recipes.schema import RecipeError
from rnnlab.recipes.shipped import names, text

RECIPE = """
[data]
kind = "shapes"

[model]
cell_type = "gru"
hidden_dim = 32

[training]
optim_config = { learning_rate = 0.002 }
schedule = { name = "step", every = 3, factor = 0.7 }
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def test_values_and_defaults(file):
    recipe = load_recipe(file)
    assert recipe.data.kind == "shapes"
    assert (recipe.model.cell_type, recipe.model.hidden_dim, recipe.model.wordvec_dim) == ("gru", 32, 128)
    assert recipe.training.optim_config == {"learning_rate": 0.002}
    assert recipe.training.schedule["factor"] == 0.7
    assert recipe.decoding.beam_size == 3
    assert recipe.evaluation.metrics == list(METRICS)


def test_overrides(file):
    overrides = [
        "model.hidden_dim = 64",
        "model.cell_type=rnn",
        'training.monitor="val_perplexity"',
        "training.optim_config.beta1=0.5",
        "training.schedule={name = 'exponential', decay = 0.9}",
        "decoding.max_length=12",
        "evaluation.metrics=['BLEU']",
        "data.directory=a=b",
    ]
    recipe = load_recipe(file, overrides)
    assert (recipe.model.hidden_dim, recipe.model.cell_type) == (64, "rnn")
    assert recipe.training.monitor == "val_perplexity"
    assert recipe.training.optim_config == {"learning_rate": 0.002, "beta1": 0.5}
    assert recipe.training.schedule == {"name": "exponential", "decay": 0.9}
    assert recipe.decoding.max_length == 12
    assert recipe.evaluation.metrics == ["BLEU"]
    assert str(recipe.data.directory) == "a=b"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.hiden_dim=3", "--set: model.hiden_dim is unknown; did you mean hidden_dim?"),
        ("model.hidden_dim=three", "--set: model.hidden_dim is 'three', expected an integer of at least 1"),
        ("hidden_dim=3", "--set: hidden_dim is unknown; did you mean model.hidden_dim?"),
        ("seed=3", "--set: seed is unknown; did you mean training.seed?"),
        ("max_train=3", "--set: max_train is unknown; did you mean data.max_train?"),
        ("model.zoneout_h=0.1", "model.zoneout_h is unknown; did you mean regularisation.zoneout_h?"),
        ("training.learning_rate=0.1", "training.learning_rate is unknown; it is optim_config.learning_rate"),
        ("modle.hidden_dim=3", "--set: modle is unknown; did you mean model?"),
        ("model.reviewr.blocks=2", "--set: model.reviewr is unknown; did you mean reviewer?"),
        ("model.hidden_dim", "--set: 'model.hidden_dim', expected key.sub=value"),
        ("=3", "--set: '=3', expected key.sub=value"),
        ("data.kind.x=3", "--set: data.kind.x: kind is 'shapes', expected a table"),
        (
            "data.kind=imagenet",
            "data.kind is 'imagenet', expected one of 'shapes', 'course', 'karpathy', 'coco'",
        ),
        ("data.kind=course", "data.directory is missing, expected a path"),
        ("training.update_rule=adma", "training.update_rule is 'adma', expected one of sgd, momentum"),
        ("training.optim_config.beta=1", "training.optim_config: unknown key 'beta'; adam has learning_rate"),
        (
            "training.optim_config.beta1=1",
            "training.optim_config: beta1 is 1, expected a probability in [0, 1)",
        ),
        ("training.schedule.name=cosin", "training.schedule: name is 'cosin', expected one of constant"),
        ("training.monitor=CIDEr", "training.monitor is 'CIDEr', expected one of val_loss, val_perplexity"),
        ("model.cell_type=lsmt", "--set: model.cell_type is 'lsmt', expected one of rnn, lstm, gru"),
        ("model.cell_type=no:Cell", "--set: model.cell_type is 'no:Cell', which cannot be imported"),
        (
            "model.cell_type=os:getcwd",
            "--set: model.cell_type is 'os:getcwd', found <built-in function getcwd>, expected a",
        ),
        (
            "model.attention_dim=64",
            "--set: model.attention_dim is 64, which needs attention or target_attention",
        ),
        ("model.init_scale=0.1", "--set: model.init_scale is 0.1, which needs initialisation 'uniform'"),
        ("model.selector=true", "--set: model.selector is True, which needs attention"),
        ("model.discriminative=0.5", "--set: model.discriminative is 0.5, which needs the thought"),
        ("model.discriminative_words=9", "--set: model.discriminative_words is 9, which needs the"),
        ("model.reviewer.blocks=1", "--set: model.reviewer.blocks is 1, which needs attention"),
        ("model.reviewer.steps=2", "model.reviewer has steps but no blocks"),
        ("model.forget_bias=1", "--set: model.forget_bias is 1.0, but cell 'gru' has no forget gate"),
        ("model.project_cell=true", "--set: model.project_cell is True, but cell 'gru' has no cell state"),
        (
            "model.regularisation.recurrent_dropout_on=candidate",
            "--set: model.regularisation.recurrent_dropout_on is 'candidate', which needs a recurrent",
        ),
        (
            "model.regularisation.zoneout_c=0.1",
            "--set: model.regularisation.zoneout_c is 0.1, but cell 'gru' has no cell state",
        ),
        ("model.word_dropout=1.0", "--set: model.word_dropout is 1.0, expected a probability in [0, 1)"),
        ("model.attention=dot", "--set: model.attention is 'dot', which needs data.features 'local', found"),
        (
            "data.features=local",
            "--set: data.features is 'local', which needs model.attention 'additive'",
        ),
        (
            "data.global_features=pca",
            "--set: data.global_features is 'pca', which needs features 'local'",
        ),
        ("decoding.n_best=4", "decoding.n_best is 4, expected at most 3, beam_size"),
        ("callbacks.every=5", "--set: callbacks.every is 5, which needs json_lines, tensorboard, wandb or"),
        ("callbacks.wandb_project=a", "--set: callbacks.wandb_project is 'a', which needs wandb = true"),
        (
            "decoding.temperature=0.5",
            "--set: decoding.temperature is 0.5, which needs method sample, found 'beam'; expected 1.0",
        ),
        ("decoding.diversity=1.0", "--set: decoding.diversity is 1.0, which needs num_groups of at least 2"),
        ("decoding.normalisation=gnmt", "normalisation is 'gnmt', which needs length_penalty above 0"),
        ("evaluation.metrics=['BLUE']", "--set: evaluation.metrics.1 is 'BLUE', expected one of 'BLEU'"),
    ],
)
def test_errors_name_the_key(file, override, message):
    with pytest.raises(RecipeError) as error:
        load_recipe(file, [override])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["model.attention=additive"],
            "model.image_input is 'first_input', expected 'initial_state'",
        ),
        (["model.target_attention=true"], "expected 'initial_state' with target_attention"),
        (["model.state_activation=tanh"], "--set: model.state_activation is 'tanh', expected 'none' with"),
        (
            ["model.project_cell=true", "model.cell_type=lstm"],
            "--set: model.project_cell is True, expected False with image_input 'first_input', because the",
        ),
    ],
    ids=str,
)
def test_options_that_contradict_the_input_of_the_image(file, overrides, message):
    with pytest.raises(RecipeError) as error:
        load_recipe(file, ["model.image_input=first_input", *overrides])
    assert message in str(error.value)


def test_an_average_of_parameters_needs_the_best_epoch(file):
    overrides = ["training.ema_decay=0.9", "training.restore_best=false"]
    with pytest.raises(RecipeError, match="training.ema_decay is 0.9, which needs restore_best"):
        load_recipe(file, overrides)
    file.write_text(f"{RECIPE}restore_best = false\n[[stage]]\nema_decay = 0.5")
    with pytest.raises(RecipeError, match="stage.1.ema_decay is 0.5, which needs restore_best"):
        load_recipe(file)


def test_a_dot_product_with_an_encoder_of_another_size():
    two_directions = ["model.attention=dot", "model.hidden_dim=8", "model.encoder_dim=4"]
    two_directions += ["model.attention_dim=none"]
    assert load_recipe("multi30k_source_attention", two_directions).model.attention == "dot"
    with pytest.raises(RecipeError, match="model.attention is 'dot', .* found 8 and 4: use 'additive' or"):
        load_recipe("multi30k_source_attention", [*two_directions, "model.bidirectional=false"])


def test_errors_of_the_file_name_it(file):
    file.write_text(RECIPE + "\n[decoding]\nbeam_size = 0")
    with pytest.raises(RecipeError) as error:
        load_recipe(file)
    assert str(error.value) == f"{file}: decoding.beam_size is 0, expected an integer of at least 1"


def test_a_score_of_each_epoch_can_be_monitored(file):
    recipe = load_recipe(file, ["training.monitor=BLEU-4", "evaluation.each_epoch=['BLEU']"])
    assert recipe.training.monitor == "BLEU-4"
    with pytest.raises(
        RecipeError, match=r"each_epoch_greedy is True, which needs scores in evaluation\.each_epoch$"
    ):
        load_recipe(file, ["evaluation.each_epoch_greedy=true"])


def test_the_kind_of_data_makes_a_recipe_one_of_translations(file):
    file.write_text('[data]\nkind = "parallel"\ndirectory = "x"\n[model]\nencoder_dim = 3')
    recipe = load_recipe(file, ["training.monitor=BLEU", "evaluation.each_epoch=['BLEU']"])
    assert isinstance(recipe, TranslationRecipe)
    assert (recipe.model.encoder_dim, recipe.evaluation.split) == (3, "test")
    for override, message in (
        ("model.image_input=every_step", "model.image_input is unknown"),
        ("evaluation.metrics=['CIDEr']", "evaluation.metrics.1 is 'CIDEr', expected one of 'BLEU', 'CS-k'"),
        ("data.long_pairs=cut", "data.long_pairs is 'cut', which needs max_length"),
        ("data.min_count=0", "data.min_count is 0, expected an integer of at least 1"),
        ("data.kind=imagenet", "data.kind is 'imagenet', expected one of 'shapes', 'course', 'karpathy', "),
        ("data.kind=['a']", "data.kind is ['a'], expected one of 'shapes'"),
    ):
        with pytest.raises(RecipeError) as error:
            load_recipe(file, [override])
        assert f"--set: {message}" in str(error.value)
    with pytest.raises(
        RecipeError,
        match=r"data\.kind is missing, expected one of .* 'text', 'running_text', 'mnist', 'digits'",
    ):
        recipe_from_dict({"data": {}})


def test_the_kind_of_data_makes_a_recipe_one_of_language_models(file):
    file.write_text('[data]\nkind = "text"\ntrain = "x"\n[model]\ndecoder_layers = 2')
    recipe = load_recipe(file, ["decoding.method=sample", "data.tokenizer=characters"])
    assert isinstance(recipe, LanguageRecipe)
    assert (recipe.model.decoder_layers, recipe.data.val, recipe.evaluation.max_sentences) == (2, None, None)
    for override, message in (
        ("model.attention=additive", "model.attention is unknown"),
        ("model.attention_dim=3", "model.attention_dim is 3, which needs"),
        ("evaluation.metrics=['BLEU']", "evaluation.metrics is unknown"),
        ("training.monitor=BLEU", "training.monitor is 'BLEU', expected one of val_loss, val_perplexity"),
        ("data.tokenizer=sentencepiece", "data.tokenizer is 'sentencepiece', expected one of 'text', "),
        ("stage=[{self_critical = {}}]", "stage.1.self_critical is for models that caption images"),
    ):
        with pytest.raises(RecipeError) as error:
            load_recipe(file, [override])
        assert message in str(error.value)


def test_running_text_is_one_text(file):
    file.write_text('[data]\nkind = "running_text"\ntrain = "x"\nwindow = 20')
    recipe = load_recipe(file)
    assert isinstance(recipe, LanguageRecipe)
    assert (recipe.data.window, recipe.data.val) == (20, None)
    for override, message in (
        (
            "model.target_attention=true",
            "model.target_attention is true, expected false with data.kind 'runn",
        ),
        (
            "evaluation.max_sentences=3",
            "evaluation.max_sentences is 3, expected none with data.kind 'running",
        ),
        ("data.window=0", "data.window is 0, expected an integer of at least 1"),
        ("data.max_train=3", "data.max_train is unknown"),
    ):
        with pytest.raises(RecipeError) as error:
            load_recipe(file, [override])
        assert message in str(error.value)


def test_the_kind_of_data_makes_a_recipe_one_of_classes(file):
    file.write_text('[data]\nkind = "mnist"\ndirectory = "x"\n[model]\nreadout = "mean"')
    recipe = load_recipe(file, ["training.monitor=val_accuracy", "data.permute_seed=0"])
    assert isinstance(recipe, ClassificationRecipe)
    assert (recipe.data.num_val, recipe.data.permute_seed, recipe.model.readout) == (5000, 0, "mean")
    assert load_recipe(file, ["data={kind = 'digits', max_train = 9}"]).data.max_train == 9
    for override, message in (
        ("model.wordvec_dim=3", "model.wordvec_dim is unknown"),
        (
            "decoding.beam_size=3",
            "decoding is unknown; there are data, model, training, stage, callbacks, evaluation",
        ),
        ("model.readout=first", "model.readout is 'first', expected one of 'last', 'mean'"),
        ("data.permute_seed=-1", "data.permute_seed is -1, expected an integer of at least 0 or 'none'"),
        ("data.num_val=0", "data.num_val is 0, expected an integer of at least 1"),
        ("evaluation.each_epoch=['BLEU']", "evaluation.each_epoch is unknown"),
        ("training.monitor=val_perplexity", "'val_perplexity', expected one of val_loss, val_accuracy"),
    ):
        with pytest.raises(RecipeError) as error:
            load_recipe(file, [override])
        assert message in str(error.value)


@pytest.mark.parametrize("content", [b"[data\n", b"\xff"])
def test_not_toml(file, content):
    file.write_bytes(content)
    with pytest.raises(RecipeError, match=r"recipe\.toml: not a TOML file: "):
        load_recipe(file)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_recipe(tmp_path / "no.toml")


def test_data_is_required():
    with pytest.raises(RecipeError, match=r"^config: data is missing, expected a table"):
        recipe_from_dict({})


def test_round_trip_keeps_paths_as_written(file):
    recipe = load_recipe(file, ["data.directory=$RNNLAB_DATA/shapes"])
    stored = json.loads(json.dumps(recipe.to_dict()))
    assert stored["data"]["directory"] == "$RNNLAB_DATA/shapes"
    assert recipe_from_dict(stored) == recipe


def test_overriding_leaves_the_given_tables_alone():
    tables = {"data": {"kind": "shapes"}}
    recipe_from_dict(tables, overrides=["data.max_train=3", "model.hidden_dim=4"])
    assert tables == {"data": {"kind": "shapes"}}


@pytest.mark.parametrize("name", names())
def test_recipes_load(name):
    recipe = load_recipe(name)
    assert recipe_from_dict(recipe.to_dict()) == recipe


@pytest.mark.parametrize("name", names())
def test_every_key_of_a_recipe_is_explained(name):
    lines = text(name).splitlines()
    keys = [line for line in lines if "=" in line.partition("#")[0]]
    assert [line for line in keys if "#" not in line] == []
