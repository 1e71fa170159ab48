import os
import re
import socket
from importlib.metadata import PackageNotFoundError

import pytest

from rnnlab.errors import NotInstalledError
from rnnlab.serving import server
from rnnlab.serving.server import address_of, gradio_settings, listen, require_gradio


def test_the_port_that_was_asked_for():
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert port > 0
        assert first.getsockname()[0] == "127.0.0.1"
        with pytest.raises(OSError, match=f"--port {port}: Address already in use: choose another, or leave"):
            listen("127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass


def test_the_next_free_port_by_default(monkeypatch):
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(server, "_FIRST_PORT", port)
        with listen("127.0.0.1") as found:
            assert port < found.getsockname()[1] < port + 100
        monkeypatch.setattr(server, "_TRIED_PORTS", 1)
        with pytest.raises(OSError, match=f"no port from {port} to {port} is free: choose another"):
            listen("127.0.0.1")


def test_hosts_that_are_not_this_machine(monkeypatch):
    with pytest.raises(OSError, match=r"--host 192.0.2.1 is not an address of this machine"):  # for documents
        listen("192.0.2.1")

    def unknown(*arguments, **options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(OSError, match="--host nowhere: Name or service not known"):
        listen("nowhere")


class Listener:
    def __init__(self, *address):
        self.address = address

    def getsockname(self):
        return self.address


def test_the_address_for_a_browser():
    assert address_of(Listener("127.0.0.1", 7860)) == "http://127.0.0.1:7860"
    assert address_of(Listener("::1", 80, 0, 0)) == "http://[::1]:80"
    assert address_of(Listener("0.0.0.0", 80)) == "http://localhost:80"


def test_gradio_sends_no_statistics_and_its_folder_is_deleted(monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", "/before")
    monkeypatch.delenv("GRADIO_ANALYTICS_ENABLED", raising=False)
    with gradio_settings():
        folder = os.environ["GRADIO_TEMP_DIR"]
        assert os.path.isdir(folder)
        assert os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"
    assert not os.path.exists(folder)
    assert os.environ["GRADIO_TEMP_DIR"] == "/before"
    assert "GRADIO_ANALYTICS_ENABLED" not in os.environ


@pytest.mark.parametrize("host", ["a" * 64 + ".org", "a..b"])
def test_hosts_that_cannot_be_encoded(host):
    with pytest.raises(ValueError, match=f"--host '{host}', expected an address or a name of this machine"):
        listen(host)


def test_gradio_is_missing(monkeypatch, tmp_path):
    """A folder of the name in the current one is no package."""
    (tmp_path / "gradio").mkdir()
    monkeypatch.syspath_prepend(tmp_path)

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(server, "version", missing)
    with pytest.raises(ImportError, match=r'needs Gradio: pip install "rnnlab\[serve\]"') as caught:
        require_gradio()
    assert caught.value.name is None


def test_another_version_of_gradio(monkeypatch):
    monkeypatch.setattr(server, "version", lambda name: "5.49.1")
    with pytest.raises(ImportError, match=r"needs Gradio 6, found 5\.49\.1: pip install"):
        require_gradio()


@pytest.mark.parametrize("error", [ImportError("cannot import name 'A'"), AttributeError("no B")], ids=repr)
def test_gradio_cannot_be_imported(error, monkeypatch):
    def broken(name):
        raise error

    monkeypatch.setattr(server, "import_module", broken)
    message = re.escape(f"Gradio cannot be imported ({type(error).__name__}: {error}): pip install")
    with pytest.raises(NotInstalledError, match=message), listen("127.0.0.1", 0) as listener:
        server.serve(None, listener, max_upload=1, announce=None)
