import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from rnnlab.data import PCA, read_features
from rnnlab.data.photographs import extraction, reading
from rnnlab.data.photographs.encoder import ImageEncoder, choose_encoding
from rnnlab.data.photographs.encoding import read_encoding
from rnnlab.data.photographs.extraction import extract_features, find_photographs
from rnnlab.data.projection import Projection, read_projection
from rnnlab.files import atomic_hdf5
from rnnlab.locks import InUseError, locked

from .networks import KERNEL, REGIONS, D, write_network

KILLED = """
import os, signal, sys
from pathlib import Path
from rnnlab.data.photographs import extraction, parts
from rnnlab.data.photographs.encoder import ImageEncoder, choose_encoding

extraction.BATCH_SIZE = extraction.PART_SIZE = 2
add = parts.Parts.add
def killed(self, photographs, features):
    if len(self.photographs) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, photographs, features)
parts.Parts.add = killed
network, folder, out = map(Path, sys.argv[1:])
encoder = ImageEncoder(choose_encoding(network))
extraction.extract_features(sorted(folder.iterdir()), out, encoder, progress=False)
"""


@pytest.fixture
def encoder(network):
    return ImageEncoder(choose_encoding(network, grid=True))


def extract(paths, out, encoder, **options):
    return extract_features(paths, out, encoder, progress=False, **options)


def test_photographs_are_found_in_files_and_folders(photographs, tmp_path):
    (photographs / "inner").mkdir()
    (photographs / "0.png").rename(photographs / "inner" / "a.JPG")
    (photographs / "notes.txt").touch()
    (photographs / "._1.png").touch()  # as macOS writes them
    (tmp_path / "b").write_bytes(b"")
    names = [path.name for path in find_photographs([tmp_path / "b", photographs])]
    assert names == ["b", *(f"{number}.png" for number in range(1, 7)), "a.JPG"]
    with pytest.raises(
        FileNotFoundError, match="absent: found no such file, expected photographs or a folder of them"
    ):
        find_photographs([tmp_path / "absent"])
    with pytest.raises(OSError, match="zero: found a device, expected photographs or a folder of them"):
        find_photographs(["/dev/zero"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty: found no photographs, expected .*JPEG2000"):
        find_photographs([tmp_path / "empty"])
    (photographs / "inner" / "1.png").touch()
    with pytest.raises(ValueError, match=r"1\.png and .*inner/1\.png have the same name"):
        find_photographs([photographs])


def test_every_format_is_found_in_a_folder(tmp_path):
    names = ["a.avif", "b.JP2", "c.ppm", "d.jpe"]
    for name in [*names, "notes.txt"]:
        (tmp_path / name).touch()
    (tmp_path / "e.jpg").mkdir()
    (tmp_path / "e.jpg" / "f.tiff").touch()
    (tmp_path / "g.png").symlink_to("absent")  # is found, named and skipped
    assert [path.name for path in find_photographs([tmp_path])] == [*names, "f.tiff", "g.png"]


def test_every_suffix_that_pillow_writes_is_found():
    for suffix, name in Image.registered_extensions().items():
        assert suffix in reading.FORMATS.get(name, [suffix])


def test_a_file_that_is_given_twice_is_taken_once(photographs, tmp_path, monkeypatch):
    monkeypatch.chdir(photographs)
    (tmp_path / "link").symlink_to(photographs)
    found = find_photographs([photographs, "0.png", tmp_path / "link" / "1.png"])
    assert found == find_photographs([photographs])


def test_names_that_are_not_utf_8_are_refused(photographs):
    (photographs / os.fsdecode(b"sch\xf6n.png")).write_bytes(b"")
    with pytest.raises(ValueError, match=r"sch\\udcf6n\.png' has a name that is not UTF-8, expected"):
        find_photographs([photographs])


def test_the_file_has_features_names_and_encoding(photographs, encoder, tmp_path, capsys):
    paths = find_photographs([photographs])
    made = extract(paths, tmp_path / "f.h5", encoder)
    names, features = read_features(tmp_path / "f.h5")
    assert names == tuple(path.name for path in paths)
    np.testing.assert_array_equal(features, encoder.encode_files(paths))
    assert read_encoding(tmp_path / "f.h5").same_as(encoder.encoding)
    assert (made.count, made.shape, made.skipped) == (7, (REGIONS, D), {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h5", "network.onnx", "photographs"]
    with h5py.File(tmp_path / "f.h5") as file:
        assert file["features"].dtype == np.float16
        assert file["filenames"].dtype.kind == "S", "not of variable length"
    with pytest.raises(FileExistsError, match=r"f\.h5 already exists"):
        extract(paths, tmp_path / "f.h5", encoder)


def test_broken_photographs_are_named_and_skipped(photographs, encoder, tmp_path):
    (photographs / "2.png").write_bytes((photographs / "2.png").read_bytes()[:90])
    (photographs / "5.png").write_text("text")
    lines = []
    made = extract(find_photographs([photographs]), tmp_path / "f.h5", encoder, report=lines.append)
    assert read_features(tmp_path / "f.h5")[0] == ("0.png", "1.png", "3.png", "4.png", "6.png")
    assert list(made.skipped) == [str(photographs / "2.png"), str(photographs / "5.png")]
    assert lines[1].startswith(f"skipped: {photographs / '5.png'}: found no image of a format")
    (tmp_path / "text.png").write_text("text")
    with pytest.raises(ValueError, match=r"g\.h5: no photograph of 1 can be read"):
        extract([tmp_path / "text.png"], tmp_path / "g.h5", encoder, report=lines.append)


@pytest.mark.slow
def test_a_kill_loses_one_part(photographs, network, tmp_path):
    """Killed when the third part is due; the same call then computes what is missing, and no more."""
    command = [sys.executable, "-c", KILLED, str(network), str(photographs), str(tmp_path / "f.h5")]
    killed = subprocess.run(command, check=False, cwd=Path(__file__).parents[3])
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "f.h5").exists()
    encoder, encoded = ImageEncoder(choose_encoding(network)), []
    encode = encoder.encode_values
    encoder.encode_values = lambda values: encoded.append(len(values)) or encode(values)
    paths = find_photographs([photographs])
    extract(paths, tmp_path / "f.h5", encoder)
    assert sum(encoded) == 3
    names, features = read_features(tmp_path / "f.h5")
    assert names == tuple(path.name for path in paths)
    np.testing.assert_array_equal(features, ImageEncoder(choose_encoding(network)).encode_files(paths))
    assert not (tmp_path / "f.h5.parts").exists()


def test_two_processes_cannot_write_one_file(photographs, encoder, tmp_path):
    with (
        locked(tmp_path / "f.h5.parts", "in use"),
        pytest.raises(InUseError, match=r"f\.h5 is in use: another process writes it"),
    ):
        extract([photographs / "0.png"], tmp_path / "f.h5", encoder)
    assert not (tmp_path / "f.h5").exists()


def test_parts_of_other_settings_are_refused(photographs, encoder, tmp_path, monkeypatch):
    paths = find_photographs([photographs])
    monkeypatch.setattr(extraction, "atomic_hdf5", interrupt)
    with pytest.raises(KeyboardInterrupt):
        extract(paths, tmp_path / "f.h5", encoder)
    monkeypatch.undo()
    pca = Projection(np.ones((1, D), np.float32), np.zeros(1, np.float32))
    for other in (
        choose_encoding(encoder.encoding.path, grid=True, crop="none"),
        replace(encoder.encoding, projection=pca),
        choose_encoding(write_network(tmp_path / "other.onnx", kernel=KERNEL * 2), grid=True),
    ):
        with pytest.raises(ValueError, match=r"f\.h5\.parts has features of an interrupted command"):
            extract(paths, tmp_path / "f.h5", ImageEncoder(other))
    extract(paths[1:], tmp_path / "f.h5", encoder)  # the folder now has one photograph less
    assert len(read_features(tmp_path / "f.h5")[0]) == 6


def test_other_photographs_of_the_same_names_are_encoded_again(photographs, encoder, tmp_path, monkeypatch):
    """One was edited after the interrupt, another one broke, and the folder was copied."""
    paths = find_photographs([photographs])
    monkeypatch.setattr(extraction, "atomic_hdf5", interrupt)
    with pytest.raises(KeyboardInterrupt):
        extract(paths, tmp_path / "f.h5", encoder)
    shutil.copytree(photographs, tmp_path / "copy")
    (tmp_path / "copy" / "5.png").write_text("text")
    changed = tmp_path / "copy" / "2.png"
    times = os.stat(changed)
    shutil.copy(photographs / "4.png", changed)
    os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    paths, encoded = find_photographs([tmp_path / "copy"]), []
    encode = encoder.encode_values
    monkeypatch.setattr(
        encoder, "encode_values", lambda values: encoded.append(len(values)) or encode(values)
    )
    with pytest.raises(KeyboardInterrupt):  # the parts now have two photographs of a name
        extract(paths, tmp_path / "f.h5", encoder, report=lambda line: None)
    monkeypatch.setattr(extraction, "atomic_hdf5", atomic_hdf5)
    made = extract(paths, tmp_path / "f.h5", encoder, report=lambda line: None)
    assert encoded == [1]
    assert (made.count, list(made.skipped)) == (6, [str(tmp_path / "copy" / "5.png")])
    found = dict(zip(*read_features(tmp_path / "f.h5"), strict=True))
    assert sorted(found) == ["0.png", "1.png", "2.png", "3.png", "4.png", "6.png"]
    for name, features in found.items():
        np.testing.assert_array_equal(features, encoder.encode_files([tmp_path / "copy" / name])[0])


def interrupt(path):
    raise KeyboardInterrupt


def test_a_pca_is_fitted_and_recorded(photographs, encoder, tmp_path):
    paths = find_photographs([photographs])
    made = extract(paths, tmp_path / "f.h5", encoder, pca_components=2)
    whole = encoder.encode_files(paths)
    fitted = PCA.fit(whole, 2)
    features = read_features(tmp_path / "f.h5")[1]
    assert features.shape == (7, REGIONS, 2)
    np.testing.assert_allclose(features, fitted.transform(whole), rtol=2e-3, atol=2e-3)
    assert made.explained == pytest.approx(fitted.explained)
    again = ImageEncoder(read_encoding(tmp_path / "f.h5"))
    np.testing.assert_allclose(again.encode_files(paths), features, rtol=2e-3, atol=2e-3)
    # other photographs take the same way, by the file of features itself
    pca = read_projection(tmp_path / "f.h5")
    other = ImageEncoder(replace(encoder.encoding, projection=pca))
    extract(paths[:2], tmp_path / "g.h5", other)
    np.testing.assert_allclose(read_features(tmp_path / "g.h5")[1], features[:2], rtol=2e-3, atol=2e-3)
    with pytest.raises(ValueError, match=r"pca_components is 6, expected 1 to the 5 of a feature vector"):
        extract(paths, tmp_path / "h.h5", encoder, pca_components=6)


def test_a_pca_of_some_photographs_is_applied_to_all(photographs, encoder, tmp_path):
    paths = find_photographs([photographs])
    training = {path.name for path in paths[::2]}
    extract(paths, tmp_path / "f.h5", encoder, pca_components=2, pca_names=training | {"absent.png"})
    fitted = PCA.fit(encoder.encode_files(paths[::2]), 2)
    features = read_features(tmp_path / "f.h5")[1]
    np.testing.assert_allclose(features, fitted.transform(encoder.encode_files(paths)), rtol=2e-3, atol=2e-3)
    with pytest.raises(ValueError, match="pca_names has none of the photographs, expected some of them"):
        extract(paths, tmp_path / "g.h5", encoder, pca_components=2, pca_names={"absent.png"})
    with pytest.raises(ValueError, match="pca_names is given, which needs pca_components"):
        extract(paths, tmp_path / "g.h5", encoder, pca_names=training)


def test_features_that_are_not_finite_are_refused(photographs, tmp_path):
    network = write_network(tmp_path / "large.onnx", kernel=KERNEL * 1e5)
    large = ImageEncoder(choose_encoding(network, pixels="none"))
    message = r"the features of 0\.png: found NaN or infinity, expected finite numbers: try --dtype float32"
    with pytest.raises(ValueError, match=message):
        extract(find_photographs([photographs]), tmp_path / "f.h5", large)
    exact = ImageEncoder(replace(large.encoding, dtype="float32"))
    extract(find_photographs([photographs]), tmp_path / "f.h5", exact)  # as the message says
    assert os.path.getsize(tmp_path / "f.h5") > 0


def test_principal_components_that_are_not_finite_are_refused(tmp_path):
    network = write_network(tmp_path / "large.onnx", kernel=np.full_like(KERNEL, 20))
    large = ImageEncoder(choose_encoding(network, pixels="none"))
    for name, colour in (("0.png", "black"), ("1.png", "white")):
        Image.new("RGB", (8, 8), colour).save(tmp_path / name)
    paths = [tmp_path / "0.png", tmp_path / "1.png"]
    assert np.isfinite(large.encode_files(paths)).all()
    with pytest.raises(ValueError, match=r"the features of 0\.png: found NaN or infinity, .* --dtype"):
        extract(paths, tmp_path / "f.h5", large, pca_components=1)
    assert not (tmp_path / "f.h5").exists()


def test_the_two_forms_of_a_name_are_one_name(photographs, tmp_path):
    content = next(iter(photographs.iterdir())).read_bytes()
    for name in ("e\u0301.png", "\u00e9.png"):
        (tmp_path / name).write_bytes(content)
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this file system has one form of names")
    with pytest.raises(ValueError, match="have the same name, expected different ones"):
        find_photographs([tmp_path])
