"""The server of a page: its port, and Gradio's settings."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from tempfile import TemporaryDirectory

from rnnlab.environment import environment
from rnnlab.errors import InputError, NotInstalledError
from rnnlab.serving.answerer import Answerer

_FIRST_PORT = 7860
_TRIED_PORTS = 100
_VERSION = "6"  # of Gradio
_INSTALL = 'pip install "rnnlab[serve]"'
_EVERYWHERE = ("0.0.0.0", "::")  # hosts that stand for all addresses of this machine


def require_gradio() -> None:
    """Check that Gradio is installed, in the version that the pages are written for.

    Raises
    ------
    ImportError
        If it is not. The message says how to install it.
    """
    try:
        found = version("gradio")
    except PackageNotFoundError:
        raise NotInstalledError(f"serving a run needs Gradio: {_INSTALL}") from None
    if found.partition(".")[0] != _VERSION:
        raise NotInstalledError(f"serving a run needs Gradio {_VERSION}, found {found}: {_INSTALL}")


def listen(host: str, port: int | None = None) -> socket.socket:
    """A socket that listens on a port of this machine.

    Parameters
    ----------
    host : str
        An address or a name of this machine.
    port : int, optional
        By default the first free one from 7860 on.

    Raises
    ------
    OSError, ValueError
        If the port is taken or not allowed, or the host is not an address of this machine. The message names
        it.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise OSError(f"--host {host}: {error.strerror}") from None
    except UnicodeError:
        raise InputError(f"--host {host!r}, expected an address or a name of this machine") from None
    for tried in range(_FIRST_PORT, _FIRST_PORT + _TRIED_PORTS) if port is None else [port]:
        listener = socket.socket(family)
        if os.name == "posix":  # on other systems the option would take the port from another program
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address[0], tried, *address[2:]))
            listener.listen()
            return listener
        except OSError as error:
            listener.close()
            if error.errno == errno.EADDRNOTAVAIL:
                raise OSError(f"--host {host} is not an address of this machine") from None
            if port is not None:
                raise OSError(
                    f"--port {port}: {error.strerror}: choose another, or leave --port out for a free one"
                ) from None
    raise OSError(f"no port from {_FIRST_PORT} to {tried} is free: choose another with --port")


def address_of(listener: socket.socket) -> str:
    """The address of the page for a browser."""
    host, port = listener.getsockname()[:2]
    if host in _EVERYWHERE:
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    answerer: Answerer, listener: socket.socket, *, max_upload: int, announce: Callable[[], None]
) -> None:
    """Serve the page of a run until the process is interrupted.

    Parameters
    ----------
    answerer : Answerer
    listener : socket
        From :func:`listen`.
    max_upload : int
        The maximum size of a file in bytes.
    announce : callable
        Called when the page is ready.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C.
    ImportError
        If Gradio, or a package that it needs, cannot be imported.
    """
    with gradio_settings():
        _check_import()
        from rnnlab.serving.application import Application, PageServer  # by Gradio, which reads the settings

        server = PageServer(Application(answerer, listener, max_upload))
        announce()
        server.run([listener])


def _check_import() -> None:
    """Raise ImportError if Gradio, or a package that it needs, cannot be imported."""
    try:
        for name in ("fastapi", "uvicorn", "gradio"):
            import_module(name)
    except Exception as error:  # packages whose versions do not fit raise errors of any type
        raise NotInstalledError(
            f"Gradio cannot be imported ({type(error).__name__}: {error}): {_INSTALL} into a new environment"
        ) from error


@contextmanager
def gradio_settings() -> Iterator[None]:
    """A context with Gradio's environment variables: no telemetry, and a temporary folder for uploads."""
    with (
        TemporaryDirectory(prefix="rnnlab-serve-", ignore_cleanup_errors=True) as folder,
        environment(GRADIO_ANALYTICS_ENABLED="False", GRADIO_TEMP_DIR=folder, HF_HUB_DISABLE_TELEMETRY="1"),
    ):
        yield
