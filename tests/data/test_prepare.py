import json

import h5py
import numpy as np
import pytest

from rnnlab.data import (
    PCA,
    CaptionData,
    LazyFeatures,
    course,
    describe,
    load_coco_data,
    prepare_annotated,
    read_coco,
    read_karpathy,
)
from rnnlab.data.photographs import ImageEncoding, Preprocessing
from rnnlab.data.projection import read_projection

SPLITS = ["train"] * 12 + ["val"] * 4 + ["test"] * 4


@pytest.fixture
def sources(tmp_path, rng):
    """Karpathy's JSON with 20 images, and their features in another order."""
    features = rng.normal(size=(20, 6)).astype(np.float32)
    features[12:] += 100  # what is fitted to more than the training split shows
    order = rng.permutation(20)
    with h5py.File(tmp_path / "features.h5", "w") as file:
        file["features"] = features[order]
        file["filenames"] = [f"{n}.jpg" for n in order]
    images = [
        {
            "filename": f"{n}.jpg",
            "split": split,
            "sentences": [{"raw": "A dog ."}, {"raw": f"{split} {n} runs"}],
        }
        for n, split in enumerate(SPLITS)
    ]
    (tmp_path / "dataset.json").write_text(json.dumps({"images": images}))
    return tmp_path / "dataset.json", tmp_path / "features.h5", features


def test_writes_the_course_s_layout(sources, tmp_path):
    annotations, path, features = sources
    out = tmp_path / "out"
    data = prepare_annotated(read_karpathy(annotations), path, out, min_count=2, max_words=4, pca=3)
    pca = PCA.fit(features[:12], 3)
    assert list(data.splits) == ["train", "val", "test"]
    for split, rows in (("train", slice(0, 12)), ("val", slice(12, 16)), ("test", slice(16, 20))):
        np.testing.assert_allclose(
            data.split(split).features[:], pca.transform(features[rows]), rtol=1e-3, atol=1e-4
        )
    assert data.vocabulary.idx_to_word[4:] == ["a", "dog", "runs", "train"]
    assert isinstance(data.split("train").features, LazyFeatures)
    assert " ".join(data.describe().splitlines()[2].split()) == "train 12 24 2.5 3 20.0% 3 float32"
    written = load_coco_data(tmp_path / "out")
    assert written["train_captions"].shape == (24, 6)
    assert written["train_features"].shape == (12, 3)
    assert written["val_urls"].tolist() == ["12.jpg", "13.jpg", "14.jpg", "15.jpg"]
    assert data.split("test").references[3] == ["A dog .", "test 19 runs"]
    recorded = read_projection(out / "val2014_vgg16_fc7_pca.h5")  # though the features record no encoder
    np.testing.assert_allclose(recorded.apply(features[12:16]), data.split("val").features[:], atol=1e-4)
    assert not list((tmp_path / "out").glob(".*")), "no temporary file is left"


def test_the_record_of_the_encoder_has_the_pca(sources, tmp_path):
    annotations, path, features = sources
    encoding = ImageEncoding("/a/net.onnx", "12ab", "pool", False, Preprocessing(8))
    with h5py.File(path, "r+") as file:
        encoding.write(file)
    data = prepare_annotated(read_karpathy(annotations), path, tmp_path / "out", pca=3)
    found = data.encodings["features"]
    assert (found.sha256, found.layer, found.dtype) == ("12ab", "pool", "float32")
    expected = data.split("val").features[:]
    np.testing.assert_allclose(found.projection.apply(features[12:16]), expected, atol=1e-4)


def test_without_pca_the_features_are_as_they_were(sources, tmp_path):
    annotations, path, features = sources
    prepare_annotated(read_karpathy(annotations), path, tmp_path / "out")
    written = load_coco_data(tmp_path / "out", pca_features=False)
    np.testing.assert_array_equal(written["train_features"], features[:12])
    assert describe(tmp_path / "out").splitlines()[2].split()[:3] == ["train", "12", "24"]


def test_from_coco(sources, tmp_path):
    _, path, features = sources
    for split, numbers in (("train", range(12)), ("val", range(12, 20))):
        content = {
            "images": [{"id": n, "file_name": f"{n}.jpg"} for n in numbers],
            "annotations": [{"image_id": n, "caption": f"a dog {n}"} for n in numbers],
        }
        (tmp_path / f"{split}.json").write_text(json.dumps(content))
    annotations = read_coco({split: tmp_path / f"{split}.json" for split in ("train", "val")})
    data = prepare_annotated(annotations, path, tmp_path / "out", min_count=1, pca=2)
    assert data.split("val").num_images == 8
    assert len(data.vocabulary) == 4 + 2 + 12  # a, dog, and a number in each caption
    expected = PCA.fit(features[:12], 2).transform(features[12:])
    np.testing.assert_allclose(data.split("val").features[:], expected, rtol=1e-3, atol=1e-3)


def test_nothing_is_written_from_bad_sources(sources, tmp_path):
    annotations, path, _ = sources
    with pytest.raises(ValueError, match="dims is 7"):
        prepare_annotated(read_karpathy(annotations), path, tmp_path / "out", pca=7)
    assert not (tmp_path / "out").exists()


def test_two_sets_are_never_mixed(sources, tmp_path, monkeypatch):
    """Another set in the same folder would leave files of the first one, which load without an error."""
    annotations, path, _ = sources
    out = tmp_path / "out"
    prepare_annotated(read_karpathy(annotations), path, out)
    before = {file: file.read_bytes() for file in out.iterdir()}
    monkeypatch.setattr(PCA, "fit", None)  # nothing is computed
    with pytest.raises(
        FileExistsError,
        match="prepare_annotated: out .*out already exists, with features of kind 'full', and",
    ):
        prepare_annotated(read_karpathy(annotations), path, out, min_count=2, pca=3)
    assert {file: file.read_bytes() for file in out.iterdir()} == before
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        FileExistsError, match="out .*empty already exists, expected no such folder: delete it"
    ):
        prepare_annotated(read_karpathy(annotations), path, tmp_path / "empty")


@pytest.mark.parametrize("name", ["write_json", "atomic_hdf5", "write_features"])
def test_a_folder_is_complete_or_absent(sources, tmp_path, monkeypatch, name):
    annotations, path, _ = sources
    before = sorted(tmp_path.iterdir())

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(course, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        prepare_annotated(read_karpathy(annotations), path, tmp_path / "out")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("split", ["../../away", "a/b", "", "."])
def test_a_split_names_no_other_folder(sources, tmp_path, split):
    path = tmp_path / "dataset.json"
    path.write_text(path.read_text().replace('"val"', json.dumps(split)))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=f"write_course: splits: found '{split}', expected names of letters"):
        prepare_annotated(read_karpathy(path), sources[1], tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before


def test_description(shapes):
    lines = CaptionData.from_course(shapes).describe().splitlines()
    assert lines[0].startswith("shapes: ")
    assert lines[0].endswith(" words")
    assert lines[1].split() == ["split", "images", "captions", "words", "longest", "<UNK>", "features"]
    assert lines[2].split()[:3] == ["train", "40", "200"]
    assert lines[2].split()[5:] == ["0.0%", "39", "float32"]
    assert lines[-1].startswith("test: test_00000.png: ")
    assert describe(shapes) == "\n".join(lines)
