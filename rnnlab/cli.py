"""The ``rnnlab`` command.

rnnlab train RECIPE [--set key=value ...] [--out DIR]      train what a recipe describes
rnnlab train --resume DIR                                  go on with a run
rnnlab caption RUN IMAGES_OR_SPLIT                         caption images
rnnlab translate RUN SENTENCE ... | --file FILE            translate sentences
rnnlab evaluate RUN --split val --beam 3 --json FILE       score captions or translations against references
rnnlab gradcheck                                           hold every gradient against a numeric one
rnnlab kernels [--warm-up]                                 show what arrays are worked on with, compile it
rnnlab data prepare | info                                 make data sets, and look at them
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rnnlab
from rnnlab import experiment, gradcheck, ops, report
from rnnlab.config import DecodingConfig, TranslationConfig, load_config
from rnnlab.data import CaptionData, describe, prepare_annotated, read_coco, read_features, read_karpathy
from rnnlab.data.parallel_text import read_lines
from rnnlab.decoding import read_lexicon
from rnnlab.experiment import Run
from rnnlab.metrics import METRICS, bleu_available, scorers_available
from rnnlab.tasks import translation
from rnnlab.tasks.search import decode

_SHOWN = 8  # captions or translations at the end of training
_INTERRUPTED = 130  # the exit status that shells give to Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status.

    It is 0, 1 if a check failed, 2 if the command could not be carried out, 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print(f"rnnlab {options.command}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (ArithmeticError, ImportError, LookupError, OSError, TypeError, ValueError) as error:
        if options.traceback:
            raise
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        print(f"rnnlab {options.command}: {text}", file=sys.stderr)
        return 2


# ---------------------------------------------------------------- commands


def _train(options: argparse.Namespace) -> int:
    if (options.recipe is None) == (options.resume is None):
        raise ValueError("give either a recipe or --resume DIR")
    if options.resume is not None:
        if options.set or options.out:
            raise ValueError(
                "--set and --out belong to a new run, a resumed one keeps its recipe and directory"
            )
        run = experiment.resume(options.resume, progress=options.progress, num_epochs=options.epochs)
    else:
        overrides = list(options.set)
        if options.epochs is not None:
            overrides.append(f"training.num_epochs={options.epochs}")
        config = load_config(options.recipe, overrides)
        out = Path(options.out or Path("runs") / Path(options.recipe).stem)
        if (out / "last.h5").exists():
            raise ValueError(
                f"{out} holds a run: go on with --resume {out}, or choose another place with --out"
            )
        run = experiment.train(config, out, progress=options.progress)
    if run.interrupted:
        print(f"Go on with: rnnlab train --resume {run.directory}")
        return _INTERRUPTED
    _show(run)
    return 0


def _show(run: Run) -> None:
    """Captions or translations and scores at the end of training."""
    if isinstance(run.config, TranslationConfig):
        _show_translations(run)
    else:
        _show_captions(run)


def _show_translations(run: Run) -> None:
    split = run.config.evaluation.split
    print(f"\nThe loss is pictured in {run.directory / 'loss.png'}.")
    if bleu_available():
        evaluated = experiment.evaluate(run)
        print(f"\nTranslations of the {split} split:\n\n{report.beside_references(evaluated, _SHOWN)}")
        print(f"\nScores of the {split} split:\n\n{report.scores_table(evaluated)}")
    else:
        print('\nScores need the extra "translation": pip install -e ".[translation]", then')
        print(f"rnnlab evaluate {run.directory} --split {split}")


def _show_captions(run: Run) -> None:
    split = run.config.evaluation.split
    images = run.data.split(split)
    count = min(_SHOWN, images.num_images)
    captions = decode(run.model, images.features[:count], run.config.decoding, rng=run.config.training.seed)
    print(f"\nCaptions of the {split} split:\n")
    print(report.captions_text(images.names[:count], captions, run.data))
    picture = run.directory / "captions.png"
    report.captions_picture(picture, images.names[:count], captions, run.data)
    print(f"\nPictured in {picture}, the loss in {run.directory / 'loss.png'}.")
    if scorers_available():
        print(f"\nScores of the {split} split:\n")
        print(report.scores_table(experiment.evaluate(run)))
    else:
        print('\nScores need the extra "eval": pip install -e ".[eval]", then')
        print(f"rnnlab evaluate {run.directory} --split {split}")


def _caption(options: argparse.Namespace) -> int:
    run = experiment.load_run(options.run_directory)
    if isinstance(run.config, TranslationConfig):
        raise ValueError(f"{run.directory} holds a model that translates: rnnlab translate {run.directory}")
    names, features = _images(run, options.images)
    if options.first is not None:
        names, features = names[: options.first], features[: options.first]
    captions = decode(
        run.model,
        features,
        _decoding(run, options),
        rng=options.seed,
        alignments=options.show_attention is not None,
    )
    print(report.captions_text(names, captions, run.data))
    if options.picture:
        report.captions_picture(options.picture, names, captions, run.data)
    if options.show_attention:
        report.attention_picture(options.show_attention, names[:_SHOWN], captions[:_SHOWN], run.data)
    return 0


def _images(run: Run, wanted: Sequence[str]) -> tuple[tuple[str, ...], Any]:
    """The names and the features of a split, of a features file, or of images by name."""
    if len(wanted) == 1 and wanted[0] in run.data.splits:
        images = run.data.split(wanted[0])
        return images.names, images.features
    if len(wanted) == 1 and wanted[0].endswith((".h5", ".hdf5")):
        names, features = read_features(wanted[0])
        return names, run.data.standardise(features[:])
    return tuple(wanted), run.data.features_of(wanted)


def _translate(options: argparse.Namespace) -> int:
    run = experiment.load_run(options.run_directory, with_data=False)
    if not isinstance(run.config, TranslationConfig):
        raise ValueError(f"{run.directory} holds a model that captions: rnnlab caption {run.directory}")
    if options.sentences and options.file:
        raise ValueError("give either sentences or --file")
    if options.sentences:
        lines = options.sentences
    elif options.file:
        lines = read_lines(options.file)
    else:
        lines = [line.rstrip("\r\n") for line in sys.stdin]
    sources = [translation.tokenize(run.config.data, line) for line in lines[: options.first]]
    if options.show_attention and len(sources) != 1:
        raise ValueError(f"--show-attention draws one sentence, and {len(sources)} are given")
    translations = translation.translate(
        run.model,
        sources,
        _decoding(run, options),
        lexicon=read_lexicon(options.lexicon) if options.lexicon else None,
        alignments=options.show_attention is not None,
        rng=options.seed,
    )
    if translations:
        print(report.translations_text(translations))
    if options.show_attention:
        report.alignment_picture(options.show_attention, sources[0], translations[0][0])
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    run = experiment.load_run(options.run_directory)
    translates = isinstance(run.config, TranslationConfig)
    changes = {"metrics": options.metrics, "tokenizer": options.tokenizer, "lexicon": options.lexicon}
    given = {key: value for key, value in changes.items() if value is not None}
    for key in given:
        if translates != (key == "lexicon"):
            of, does = ("captions", "translates") if translates else ("translations", "captions")
            raise ValueError(f"--{key} is for {of}, and the model of {run.directory} {does}")
    lexicon = {"lexicon": read_lexicon(given.pop("lexicon"))} if options.lexicon else {}
    if options.first is not None:
        given["max_sentences" if translates else "max_images"] = options.first
    evaluation = dataclasses.replace(run.config.evaluation, **given)
    split = options.split or evaluation.split
    result = experiment.evaluate(
        run, split, decoding=_decoding(run, options), evaluation=evaluation, **lexicon
    )
    print(report.scores_table(result))
    if options.json:
        report.write_scores(options.json, result, run, split)
    return 0


def _decoding(run: Run, options: argparse.Namespace) -> DecodingConfig:
    """The recipe's decoding, with what the command line says instead."""
    changes = {
        "method": "beam" if options.method is None and options.beam is not None else options.method,
        "beam_size": options.beam,
        "max_length": options.max_length,
        "length_penalty": options.length_penalty,
        "n_best": options.n_best,
        "temperature": options.temperature,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    method = given.get("method", run.config.decoding.method)
    for key, of in (("beam_size", "beam"), ("temperature", "sample")):
        if key in given and method != of:
            raise ValueError(f"{key} is given, but only {of} search has one, and this is {method}")
    if method != "beam":
        given.setdefault("n_best", 1)
    return dataclasses.replace(run.config.decoding, **given)


def _gradcheck(options: argparse.Namespace) -> int:
    passed = True
    for title, rows in (
        ("layer", gradcheck.check_layers(tolerance=options.tolerance, seed=options.seed)),
        ("model", gradcheck.check_models(tolerance=options.tolerance, seed=options.seed)),
    ):
        table, good = report.checks_table(title, rows)
        print(table, end="\n\n")
        passed &= good
    print("All gradients agree." if passed else "Some gradients are WRONG.")
    return 0 if passed else 1


def _kernels(options: argparse.Namespace) -> int:
    print(ops.describe())
    if options.warm_up:
        seconds = ops.warm_up()
        print(
            f"Compiled what was not kept from before in {seconds:.1f} s."
            if seconds
            else "Nothing to compile."
        )
    return 0


def _prepare(options: argparse.Namespace) -> int:
    if options.karpathy:
        annotations = read_karpathy(options.karpathy)
    else:
        annotations = read_coco(dict(_split_file(text) for text in options.coco))
    written = prepare_annotated(
        annotations,
        options.features,
        options.out,
        min_count=options.min_count,
        max_words=options.max_words,
        pca=options.pca,
    )
    print(describe(written))
    return 0


def _split_file(text: str) -> tuple[str, str]:
    split, equals, path = text.partition("=")
    if not equals:
        raise ValueError(f"--coco: got {text!r}, expected SPLIT=FILE, such as train=captions_train2017.json")
    return split, path


def _info(options: argparse.Namespace) -> int:
    if options.set and not options.data.endswith(".toml"):
        raise ValueError(f"--set changes keys of a recipe, and {options.data} is not one")
    if options.data.endswith(".toml"):
        data = experiment.open_data(load_config(options.data, options.set).data)
    else:
        data = CaptionData.from_course(options.data, standardise=False)
    print(describe(data))
    return 0


# ---------------------------------------------------------------- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rnnlab", description=rnnlab.__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"rnnlab {rnnlab.__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where in the code an error arose")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train what a recipe describes")
    train.set_defaults(run=_train)
    train.add_argument("recipe", nargs="?", help="a TOML file, such as recipes/shapes.toml")
    train.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="change a key: model.hidden_dim=256"
    )
    train.add_argument("--out", help="run directory, runs/NAME_OF_RECIPE if left out")
    train.add_argument("--resume", metavar="DIR", help="go on with the run in DIR")
    train.add_argument("--epochs", type=_count, help="train for so many epochs in all")
    train.add_argument(
        "--no-progress", dest="progress", action="store_false", help="print lines, not a progress bar"
    )

    caption = commands.add_parser("caption", help="caption images")
    caption.set_defaults(run=_caption)
    caption.add_argument("run_directory", metavar="RUN", help="the directory of a run")
    caption.add_argument(
        "images",
        nargs="+",
        metavar="IMAGES_OR_SPLIT",
        help="a split (val), names of images in the run's data, or an HDF5 file of features",
    )
    caption.add_argument("--picture", metavar="FILE", help="write a PNG of the images with their captions")
    caption.add_argument(
        "--show-attention", metavar="FILE", help=f"write a PNG of what the first {_SHOWN} captions looked at"
    )
    caption.add_argument("--seed", type=int, default=0, help="of sampling")
    _add_decoding(caption)

    _add_translate(commands.add_parser("translate", help="translate sentences"))

    evaluate = commands.add_parser("evaluate", help="score captions or translations against references")
    evaluate.set_defaults(run=_evaluate)
    evaluate.add_argument("run_directory", metavar="RUN", help="the directory of a run")
    evaluate.add_argument("--split", help="one of the data's, such as val; the recipe's if left out")
    evaluate.add_argument("--json", metavar="FILE", help="write scores and sentences")
    evaluate.add_argument("--metrics", nargs="+", choices=list(METRICS), help="the recipe's if left out")
    evaluate.add_argument("--tokenizer", choices=["simple", "ptb"], help="ptb is COCO's and needs Java")
    evaluate.add_argument("--lexicon", metavar="FILE", help="words for <UNK>, as rnnlab translate takes")
    _add_decoding(evaluate)

    check = commands.add_parser("gradcheck", help="hold every gradient against a numeric one")
    check.set_defaults(run=_gradcheck)
    check.add_argument("--tolerance", type=float, default=1e-7, help="the largest relative error that passes")
    check.add_argument("--seed", type=int, default=0, help="of the inputs")

    kernels = commands.add_parser("kernels", help="show what works on arrays here, and compile it")
    kernels.set_defaults(run=_kernels)
    kernels.add_argument(
        "--warm-up", action="store_true", help="compile all kernels now, unless they are kept from before"
    )

    data = commands.add_parser("data", help="make data sets, and look at them")
    actions = data.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_prepare(actions.add_parser("prepare", help="annotations and features to the course's layout"))
    info = actions.add_parser("info", help="what is in a data set")
    info.set_defaults(run=_info)
    info.add_argument("data", help="a folder in the course's layout, or a recipe")
    info.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a recipe's key")
    return parser


def _count(text: str) -> int:
    """An argument that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, expected an integer of at least 1")
    return int(text)


def _add_translate(translate: argparse.ArgumentParser) -> None:
    translate.set_defaults(run=_translate)
    translate.add_argument("run_directory", metavar="RUN", help="the directory of a run")
    translate.add_argument(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="standard input if there is none, and no --file",
    )
    translate.add_argument("--file", help="a sentence a line, gzipped or not")
    translate.add_argument(
        "--lexicon",
        metavar="FILE",
        help="words for <UNK>: lines of a source word, a tab, a target word; else the source's own word",
    )
    translate.add_argument("--show-attention", metavar="FILE", help="draw what was attended to, in a PNG")
    translate.add_argument("--seed", type=int, default=0, help="of sampling")
    _add_decoding(translate)


def _add_prepare(prepare: argparse.ArgumentParser) -> None:
    prepare.set_defaults(run=_prepare)
    source = prepare.add_mutually_exclusive_group(required=True)
    source.add_argument("--karpathy", metavar="FILE", help="dataset_*.json with its splits")
    source.add_argument("--coco", nargs="+", metavar="SPLIT=FILE", help="COCO captions, one file a split")
    prepare.add_argument("--features", required=True, metavar="FILE", help="HDF5: features, filenames")
    prepare.add_argument("--out", required=True, metavar="DIR", help="the folder to write")
    prepare.add_argument("--min-count", type=int, default=5, help="a word's least count in training captions")
    prepare.add_argument("--max-words", type=int, default=15, help="longer captions are cut")
    prepare.add_argument("--pca", type=int, metavar="D", help="reduce features to D numbers, fitted on train")


def _add_decoding(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("decoding", "the recipe's if left out")
    group.add_argument("--method", choices=["greedy", "beam", "sample"])
    group.add_argument("--beam", type=_count, metavar="K", help="beam search with K partial sentences")
    group.add_argument("--n-best", type=_count, metavar="N", help="find N sentences for each source")
    group.add_argument(
        "--length-penalty", type=float, metavar="A", help="rank by log-probability / (words + 1)^A"
    )
    group.add_argument("--max-length", type=_count, metavar="T", help="the most words in a sentence")
    group.add_argument("--temperature", type=float, help="of sampling")
    group.add_argument(
        "--max-images", "--max-sentences", dest="first", type=_count, metavar="N", help="only the first N"
    )


if __name__ == "__main__":
    sys.exit(main())
