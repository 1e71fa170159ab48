"""A right file of each format that rnnlab reads, and its reader."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from PIL import Image

from rnnlab import runs
from rnnlab.data import (
    open_features,
    read_coco,
    read_idx,
    read_karpathy,
    read_word_vectors,
)
from rnnlab.data.course import read_course, read_vocabulary
from rnnlab.data.parallel_text import read_lines
from rnnlab.data.photographs import read_photograph
from rnnlab.decoding import read_lexicon
from rnnlab.recipes.recipe import load_recipe, recipe_from_dict
from rnnlab.recipes.shipped import text
from rnnlab.training import load_checkpoint, load_model

from .mutations import Format


def formats(folder: Path, tables: dict[str, Any]) -> dict[str, Format]:
    """The formats by name. ``tables`` is a recipe on shapes, whose run and whose data are among the files."""
    run = runs.train(recipe_from_dict(tables), folder / "run", progress=False).directory
    shapes = Path(tables["data"]["directory"])
    made = {
        "checkpoint": Format(run / "last.h5", _read_checkpoint),
        "captions": Format(shapes / "coco2014_captions.h5", lambda path: read_course(path.parent)),
        "vocabulary": Format(shapes / "coco2014_vocab.json", read_vocabulary),
    }
    named = folder / "features.h5"
    with h5py.File(named, "w") as file:
        file["features"] = np.arange(12, dtype=np.float32).reshape(4, 3)
        file["filenames"] = np.array([b"a.png", b"b.png", b"c.png", b"d.png"])
    made["features"] = Format(named, open_features)
    sentences = [{"raw": "A dog runs.", "tokens": ["a", "dog", "runs"]}, {"raw": "A wet dog."}]
    karpathy = [
        {"filename": f"{k}.png", "split": split, "sentences": sentences}
        for k, split in enumerate(("train", "val"))
    ]
    made["Karpathy"] = _json(folder / "karpathy.json", {"images": karpathy}, read_karpathy)
    coco = {
        "images": [{"id": k, "file_name": f"{k}.png"} for k in range(3)],
        "annotations": [{"id": k, "image_id": k % 3, "caption": "A dog runs."} for k in range(6)],
    }
    made["COCO"] = _json(folder / "coco.json", coco, lambda path: read_coco({"train": path}))
    contents = {
        "recipe": ("recipe.toml", text("shapes").encode(), load_recipe),
        "text": ("text.gz", gzip.compress(b"one line\nanother\n" * 20), read_lines),
        "lexicon": ("lexicon.tsv", b"Hund\tdog\nKatze\tcat\n" * 5, read_lexicon),
        "word vectors": (
            "vectors.txt",
            b"3 2\ndog 0.1 0.2\ncat 1 2\n<unk> 0 0\n",
            lambda path: read_word_vectors(path, ["dog"]),
        ),
        "idx": ("images.idx", struct.pack(">4I", 2051, 2, 3, 3) + bytes(18), lambda path: read_idx(path, 3)),
    }
    for name, (file_name, content, read) in contents.items():
        (folder / file_name).write_bytes(content)
        made[name] = Format(folder / file_name, read)
    picture = folder / "photograph.png"
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(picture)
    made["photograph"] = Format(picture, lambda path: np.asarray(read_photograph(path)))
    return made


def _json(path: Path, content: Any, read: Any) -> Format:
    path.write_text(json.dumps(content), encoding="utf8")
    return Format(path, read)


def _read_checkpoint(path: Path) -> None:
    load_checkpoint(path)
    load_model(path)
