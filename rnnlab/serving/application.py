"""A page as a web application, which makes no request to other machines, and ends without delay."""

from __future__ import annotations

import socket
from importlib.resources import files
from types import FrameType
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI

from rnnlab.serving.answerer import Answerer
from rnnlab.serving.pages import page_of

# With this policy the browser refuses all requests to other machines. Gradio needs the unsafe sources.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:"
)
_PATIENCE = 3  # seconds to finish pending answers


class Application:
    """The page of a run as an ASGI application.

    Parameters
    ----------
    answerer : Answerer
    listener : socket
    max_upload : int
        The maximum size of a file in bytes.
    """

    def __init__(self, answerer: Answerer, listener: socket.socket, max_upload: int) -> None:
        host, port = listener.getsockname()[:2]
        # Features that environment variables could enable are disabled.
        self._application: Any = gr.mount_gradio_app(
            FastAPI(openapi_url=None),
            page_of(answerer),
            "/",
            server_name=host,
            server_port=port,
            footer_links=[],
            run_history=False,
            show_error=False,  # for bugs; errors of wrong input are shown
            max_file_size=max_upload,
            ssr_mode=False,
            enable_monitoring=False,
            pwa=False,
            mcp_server=False,
            theme=gr.themes.Default(
                font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
            ),
            css=files("rnnlab.serving").joinpath("style.css").read_text(encoding="utf-8"),
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, with the content security policy in the headers."""

        async def send_with_policy(message: Any) -> None:
            if message["type"] == "http.response.start":
                policy = (b"content-security-policy", _POLICY.encode())
                message["headers"] = [*message.get("headers", ()), policy]
            await send(message)

        await self._application(scope, receive, send_with_policy)

    def end_connections(self) -> None:
        """End the connections that open pages keep."""
        mounted = self._application.routes[-1].app
        mounted.stop_event.set()


class PageServer(uvicorn.Server):
    """A server that does not wait for open pages when it ends."""

    def __init__(self, application: Application) -> None:
        super().__init__(
            uvicorn.Config(
                application, log_level="warning", access_log=False, timeout_graceful_shutdown=_PATIENCE
            )
        )
        self._application = application

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server, on a signal of the operating system."""
        self._application.end_connections()
        super().handle_exit(sig, frame)
