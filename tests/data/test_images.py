import base64
import io
import struct
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from rnnlab.data import images
from rnnlab.data.images import data_url, image_from_url, image_on_disk, named_image

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)


def encoded(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "png", **options)
    return buffer.getvalue()


PNG = encoded(Image.fromarray(PIXELS))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/hangs.png":
            self.server.released.wait(20)
            return
        self.send_response(404 if self.path == "/absent.png" else 200)
        self.end_headers()
        if self.path == "/drips.png":
            for byte in PNG:
                self.wfile.write(bytes([byte]))
                if self.server.released.wait(0.05):
                    return
        elif self.path == "/garbage.png":
            self.wfile.write(b"not a picture" * 50)
        else:
            self.wfile.write(PNG)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):  # the client left: that is the test
        pass


@pytest.fixture(scope="module")
def server():
    with Server(("127.0.0.1", 0), Handler) as server:
        server.released = threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def default_images(tmp_path, monkeypatch):
    """No proxy, no real data, and a course folder of our own."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("RNNLAB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(images, "default_directory", lambda make: tmp_path / "course")
    folder = tmp_path / "course" / "images"
    folder.mkdir(parents=True)
    return folder


def is_placeholder(image, name):
    """Whether ``image`` is grey, of the placeholder's size, and says which one is missing."""
    assert image.dtype == np.uint8
    assert image.shape == (224, 224, 3)
    assert len(np.unique(image)) > 2
    np.testing.assert_array_equal(image[..., :1], image[..., 1:2])
    assert (image != image_from_url(f"not {name}")).any()
    return True


def test_an_address(server):
    np.testing.assert_array_equal(image_from_url(f"{server}/good.png", download=True), PIXELS)


@pytest.mark.parametrize("folder", [None, "."])
def test_an_address_is_fetched_only_where_it_is_asked_for(server, monkeypatch, folder):
    monkeypatch.setattr(images, "_download", lambda *args: pytest.fail("a download"))
    reasons = []
    monkeypatch.setattr(images, "_placeholder", lambda name, reason: reasons.append(reason))
    image_from_url(f"{server}/good.png", folder)
    image_from_url(f"HTTP{server.removeprefix('http')}/good.png", folder)
    assert (
        reasons == ["not downloaded: URLs are downloaded only with --download (in Python download=True)"] * 2
    )


@pytest.mark.parametrize("path", ["absent.png", "garbage.png", "hangs.png", "drips.png"])
def test_an_address_without_an_image(server, path):
    assert is_placeholder(image_from_url(f"{server}/{path}", timeout=0.3, download=True), path)


def test_a_download_has_a_limit(server, monkeypatch):
    monkeypatch.setattr(images, "DOWNLOAD_BYTES", 100)
    assert is_placeholder(image_from_url(f"{server}/good.png", download=True), "good")


def test_paths_and_names(tmp_path, default_images, monkeypatch):
    path = tmp_path / "a b.png"
    path.write_bytes(PNG)
    beside, elsewhere = tmp_path / "beside", tmp_path / "root"
    beside.mkdir()
    (elsewhere / "flickr8k" / "images").mkdir(parents=True)
    monkeypatch.setenv("RNNLAB_DATA", str(elsewhere))
    (beside / "1.png").write_bytes(PNG)
    (elsewhere / "flickr8k" / "images" / "2.png").write_bytes(PNG)
    (default_images / "3.png").write_bytes(PNG)
    for url in (path.as_uri(), str(path), path, "a b.png", "2.png", "3.png", np.str_("3.png")):
        np.testing.assert_array_equal(image_from_url(url), PIXELS, err_msg=str(url))
    for url in ("1.png", "2.png", "3.png", str(beside / "1.png"), (beside / "1.png").as_uri()):
        np.testing.assert_array_equal(image_from_url(url, beside), PIXELS, err_msg=str(url))
    assert is_placeholder(image_from_url("1.png"), "1.png")


def test_names_of_data_stay_below_the_folders(tmp_path, monkeypatch):
    """Neither by their parts, nor as absolute paths, nor through links within the folder."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "deeper").mkdir(parents=True)
    outside.mkdir()
    for folder in (inside, inside / "deeper", outside):
        (folder / "1.png").write_bytes(PNG)
    (inside / "link").symlink_to(outside)
    (inside / "link.png").symlink_to(outside / "1.png")
    (inside / "loop.png").symlink_to("loop.png")
    (tmp_path / "other name").symlink_to(inside)
    for folder in (inside, tmp_path / "other name"):
        for name in ("1.png", "deeper/1.png", "deeper/../1.png", inside / "1.png"):
            np.testing.assert_array_equal(image_from_url(name, folder), PIXELS, err_msg=str(name))
            assert image_on_disk(name, folder) == folder / name
    reasons = []
    monkeypatch.setattr(images, "_placeholder", lambda name, reason: reasons.append((name, reason)))
    away = outside / "1.png"
    for name in ("../outside/1.png", str(away), away.as_uri(), "link/1.png", "link.png"):
        image_from_url(name, inside)
        assert image_on_disk(name, inside) is None
        shown, reason = reasons.pop()
        assert shown == name
        assert f"found a path out of the folder {inside}, expected a file below it" in reason
    monkeypatch.chdir(inside)
    for name in ("../outside/1.png", str(away)):
        named_image(name, None)
        assert "found a path out of the folder ., expected a file below it" in reasons.pop()[1]
    np.testing.assert_array_equal(named_image("1.png", None), PIXELS)
    np.testing.assert_array_equal(named_image("deeper/1.png", inside), PIXELS)
    assert image_on_disk("loop.png", inside) is None
    assert image_on_disk("nul\0byte.png", inside) is None


def test_a_placeholder_names_the_folders_that_were_searched(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path / "data"))
    reasons = []
    monkeypatch.setattr(images, "_placeholder", lambda name, reason: reasons.append(reason))
    named_image("absent.png", tmp_path)
    (reason,) = reasons
    assert reason.startswith(f"no such file in {tmp_path}, {tmp_path / 'data' / 'flickr8k' / 'images'}, ")


def test_absent_public_data_matter_only_if_image_dir_lacks_the_image(tmp_path, monkeypatch):
    (tmp_path / "1.png").write_bytes(PNG)
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path / "nowhere"))
    np.testing.assert_array_equal(named_image("1.png", tmp_path), PIXELS)
    reasons = []
    monkeypatch.setattr(images, "_placeholder", lambda name, reason: reasons.append(reason))
    named_image("2.png", tmp_path)
    assert reasons == [f"RNNLAB_DATA is '{tmp_path / 'nowhere'}', expected an existing folder"]


def test_image_dir_comes_first(tmp_path):
    (tmp_path / "1.png").write_bytes(encoded(Image.new("RGB", (2, 2))))
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "1.png").write_bytes(PNG)
    np.testing.assert_array_equal(image_from_url("1.png", tmp_path / "beside"), PIXELS)


def grey():
    return Image.fromarray(PIXELS[..., 0]), np.repeat(PIXELS[..., :1], 3, axis=2)


def grey_16_bits():
    return Image.fromarray(PIXELS[..., 0].astype(np.uint16) * 257), grey()[1]


def palette():
    image = Image.fromarray(PIXELS).quantize(8)
    return image, np.array(image.convert("RGB"))


def opaque():
    return Image.fromarray(np.dstack([PIXELS, np.full((20, 30), 255, np.uint8)])), PIXELS


def transparent():
    return Image.new("RGBA", (30, 20), (9, 9, 9, 0)), np.full_like(PIXELS, 255)


@pytest.mark.parametrize("make", [grey, grey_16_bits, palette, opaque, transparent])
def test_everything_becomes_rgb(tmp_path, make):
    image, expected = make()
    (tmp_path / "image.png").write_bytes(encoded(image))
    found = image_from_url("image.png")
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["RGB", "L", "P"])
def test_a_transparent_colour_is_white(tmp_path, mode):
    colour = {"RGB": (0, 0, 0), "L": 0, "P": 0}[mode]
    (tmp_path / "image.png").write_bytes(encoded(Image.new(mode, (3, 2)), transparency=colour))
    np.testing.assert_array_equal(image_from_url("image.png"), np.full((2, 3, 3), 255))


@pytest.mark.parametrize("content", [b"", b"garbage", PNG[:40], PNG[: len(PNG) // 2]])
def test_unreadable_files(tmp_path, content):
    (tmp_path / "bad.png").write_bytes(content)
    assert is_placeholder(image_from_url("bad.png"), "bad.png")


WHATEVER = [
    *(
        "",
        ".",
        "/",
        "absent.png",
        "nul\0byte.png",
        "a" * 5000,
        "schön\n☃\ud800.png",
        "ftp://a/b.png",
        "file://",
    ),
    *(
        "http://",
        "http://[",
        "http://a b/",
        "http://127.0.0.1:99999/",
        "https://127.0.0.1:1/a.png",
        None,
        b"x",
    ),
]


@pytest.mark.parametrize("url", WHATEVER, ids=range(len(WHATEVER)))
def test_whatever_comes_in(url):
    assert is_placeholder(image_from_url(url, timeout=0.5, download=True), url)


def test_a_directory(tmp_path):
    assert is_placeholder(image_from_url(tmp_path), tmp_path)
    assert is_placeholder(image_from_url(tmp_path.as_uri()), tmp_path.as_uri())


@pytest.mark.parametrize(("width", "height"), [(30_000, 20_000), (9_000, 9_000), (5_000, 5_000)])
def test_a_picture_too_large_to_be_one(tmp_path, width, height):
    header = struct.pack(">4sIIBBBBB", b"IHDR", width, height, 8, 2, 0, 0, 0)
    end_of_header = 8 + 4 + len(header) + 4
    bomb = PNG[:12] + header + struct.pack(">I", zlib.crc32(header)) + PNG[end_of_header:]
    (tmp_path / "bomb.png").write_bytes(bomb)
    assert is_placeholder(image_from_url("bomb.png"), "bomb.png")


def test_an_image_on_the_disk_is_found_without_downloads_and_without_making_data(tmp_path, monkeypatch):
    def default_folder(*, make):
        assert not make
        return tmp_path / "default"

    monkeypatch.setattr(images, "_download", lambda *args: pytest.fail("a download"))
    monkeypatch.setattr(images, "default_directory", default_folder)
    monkeypatch.delenv("RNNLAB_DATA", raising=False)
    (tmp_path / "one.png").write_bytes(PNG)
    assert image_on_disk("one.png", tmp_path) == tmp_path / "one.png"
    assert image_on_disk(tmp_path / "one.png") == tmp_path / "one.png"
    assert image_on_disk("two.png", tmp_path) is None
    assert image_on_disk("https://example.org/one.png", tmp_path) is None
    (tmp_path / "flickr8k" / "images").mkdir(parents=True)
    (tmp_path / "flickr8k" / "images" / "two.png").write_bytes(PNG)
    monkeypatch.setenv("RNNLAB_DATA", str(tmp_path))
    assert image_on_disk("two.png") == tmp_path / "flickr8k" / "images" / "two.png"
    (tmp_path / "default" / "images").mkdir(parents=True)
    (tmp_path / "default" / "images" / "three.png").write_bytes(PNG)
    assert image_on_disk("three.png", tmp_path) == tmp_path / "default" / "images" / "three.png"


def test_pictures_are_upright_as_exif_says(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.ascontiguousarray(np.rot90(PIXELS))).save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(image_from_url("turned.png"), PIXELS)


def test_a_picture_as_a_data_url(rng):
    pixels = rng.integers(0, 256, (40, 30, 4), np.uint8)
    kind, _, data = data_url(pixels, lossless=True).partition(",")
    assert kind == "data:image/png;base64"
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), pixels)
    kind, _, data = data_url(np.full((400, 800, 3), 120, np.uint8)).partition(",")
    assert kind == "data:image/jpeg;base64"
    decoded = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert decoded.shape == (160, 320, 3)
    np.testing.assert_allclose(decoded, 120, atol=3)
