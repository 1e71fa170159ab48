"""The pages, by Gradio: a photograph, a picture or a text in, an answer as HTML out.

The functions receive the browser's data unchanged (``preprocess=False``), because Gradio would open
photographs and write some of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from rnnlab.data.images import data_url
from rnnlab.errors import InputError, InputTypeError
from rnnlab.recipes.data import HabeasTable
from rnnlab.serving.answerer import Answerer
from rnnlab.serving.captioning import PhotographCaptioner, PictureCaptioner
from rnnlab.serving.rendering import captions_html, translations_html
from rnnlab.serving.translation import Translator

_SHOWN = 12  # pictures to choose from at a time
_AN_HOUR = 3600  # seconds, after which uploads are deleted

# Pictures as buttons, each with its index among those that are shown.
_PICTURES = """<div class="pictures">
    {{#each value}}
    <button data-place="{{@index}}" aria-pressed="false"><img src="{{url}}" alt="{{name}}"></button>
    {{/each}}
</div>"""
_CHOICE = """element.addEventListener("click", event => {
    const chosen = event.target.closest("[data-place]");
    if (!chosen) return;
    for (const each of element.querySelectorAll("[data-place]")) each.ariaPressed = each === chosen;
    trigger("select", {place: Number(chosen.dataset.place)});
});"""


def page_of(answerer: Answerer) -> gr.Blocks:
    """The page of a run."""
    if isinstance(answerer, PhotographCaptioner):
        return _photograph_page(answerer)
    if isinstance(answerer, PictureCaptioner):
        return _picture_page(answerer)
    if isinstance(answerer, Translator):
        return _text_page(answerer)
    raise InputTypeError(f"page_of: answerer is a {type(answerer).__name__}, and there is no page for it")


def _photograph_page(captioner: PhotographCaptioner) -> gr.Blocks:
    def answer(photograph: dict[str, Any] | None, beam_size: float) -> str:
        if photograph is None:
            return ""
        path = uploaded(photograph)
        with _readable_errors(path):
            return captions_html(captioner.caption(path, _width(beam_size)), captioner.about_scores)

    with _page("Captions", captioner) as page, gr.Row():
        with gr.Column(min_width=300):
            photograph = gr.Image(
                label="Photograph",
                type="filepath",
                sources=["upload", "clipboard"],
                buttons=[],
                height=320,
            )
            beam = _beam_slider(captioner)
        result = _result()
        events = [photograph.upload, photograph.clear, beam.change]
        _show(answer, [photograph, beam], result, after=events, name="caption")
    uploaded = _accept_uploads_only(photograph, beam)
    return page


def _picture_page(captioner: PictureCaptioner) -> gr.Blocks:
    splits = list(captioner.splits)

    def pictures(split: str, first: int) -> tuple[int, list[dict[str, str]], None, str]:
        """The number of the first picture shown, the pictures, no chosen picture and no answer."""
        names = captioner.splits[split][first : first + _SHOWN]
        return first, [{"name": name, "url": data_url(captioner.picture(name))} for name in names], None, ""

    def others(split: str, first: int) -> tuple[int, list[dict[str, str]], None, str]:
        first += _SHOWN
        return pictures(split, first if first < len(captioner.splits[split]) else 0)

    def answer(split: str, number: int | None, beam_size: float) -> str:
        if number is None:
            return ""
        with _readable_errors():
            return captions_html(captioner.caption(split, number, _width(beam_size)), captioner.about_scores)

    def choose(split: str, first: int, beam_size: float, event: gr.EventData) -> tuple[int, str]:
        number = first + event.place
        return number, answer(split, number, beam_size)

    with _page("Captions", captioner) as page, gr.Row():
        first, number = gr.State(0), gr.State(None)  # first picture shown, chosen picture
        with gr.Column(min_width=300):
            split = gr.Radio(splits, value=splits[0], label="Pictures of the run's data")
            shown = gr.HTML(pictures(splits[0], 0)[1], html_template=_PICTURES, js_on_load=_CHOICE)
            more = gr.Button("Other pictures")
            beam = _beam_slider(captioner)
        result = _result()
        changed = [first, shown, number, result]
        split.change(lambda split: pictures(split, 0), split, changed, api_visibility="private")
        more.click(others, [split, first], changed, api_visibility="private")
        shown.select(choose, [split, first, beam], [number, result], api_visibility="private")
        _show(answer, [split, number, beam], result, after=[beam.change])
    _accept_uploads_only(split, beam)
    return page


def _text_page(translator: Translator) -> gr.Blocks:
    def answer(text: str, beam_size: float) -> str:
        with _readable_errors():
            if not isinstance(text, str):
                raise InputError(f"the text is {text!r}, expected a string")
            found = translator.translate(text, _width(beam_size))
            return translations_html(found, translator.about_scores)

    def answer_again(text: str | None, beam_size: float) -> str:
        return answer(text, beam_size) if text and not text.isspace() else ""

    reads_code = isinstance(translator.run.recipe.data, HabeasTable)
    with _page("Comments" if reads_code else "Translations", translator) as page, gr.Row():
        with gr.Column(min_width=300):
            text = gr.Textbox(label="Code" if reads_code else "Text", lines=4)
            beam = _beam_slider(translator)
            button = gr.Button("Comment" if reads_code else "Translate", variant="primary")
        result = _result()
        _show(answer, [text, beam], result, after=[button.click, text.submit], name="translate")
        _show(answer_again, [text, beam], result, after=[beam.change])
    _accept_uploads_only(text, beam)
    return page


@contextmanager
def _page(made: str, answerer: Answerer) -> Iterator[gr.Blocks]:
    """A page with a heading that names its outputs and its runs."""
    runs = ", ".join(str(path) for path in answerer.run.members or [answerer.run.directory])
    heading = f"{made} by {runs}"
    with gr.Blocks(title=heading, analytics_enabled=False, delete_cache=(_AN_HOUR, _AN_HOUR)) as page:
        gr.HTML(f"<h1 class='heading'>{escape(heading)}</h1>", js_on_load=None)
        yield page


def _beam_slider(answerer: Answerer) -> gr.Slider:
    groups, decoding = answerer.decoding.num_groups, answerer.decoding
    return gr.Slider(groups, answerer.widest_beam, decoding.beam_size, step=groups, label="Beam width")


def _width(beam_size: Any) -> int:
    """A beam width from a browser or a program, which may send anything."""
    if isinstance(beam_size, bool) or not isinstance(beam_size, int | float) or beam_size % 1:
        raise InputError(f"the beam width is {beam_size!r}, expected an integer")
    return int(beam_size)


def _result() -> gr.HTML:
    with gr.Column(min_width=300, scale=2):
        return gr.HTML(js_on_load=None)


def _show(
    answer: Callable[..., str],
    inputs: Sequence[Any],
    result: gr.HTML,
    *,
    after: Sequence[Any],
    name: str | None = None,
) -> None:
    """Show the answer to the inputs after each of the events, and none after an error."""
    asked = gr.on(
        after,
        answer,
        list(inputs),
        result,
        preprocess=False,
        trigger_mode="always_last",
        api_name=name,
        api_visibility="public" if name else "private",
    )
    asked.failure(None, None, result, js="() => ''")


@contextmanager
def _readable_errors(path: str = "") -> Iterator[None]:
    """Show errors of wrong input in the page, with a file's name instead of its path on the server."""
    try:
        yield
    except (OSError, ValueError) as error:
        message = str(error).replace(path, Path(path).name) if path else str(error)
        raise gr.Error(escape(message), print_exception=False) from None


def _accept_uploads_only(*inputs: Any) -> Callable[[Any], str]:
    """Refuse paths and addresses from a client: Gradio would read files of this machine or other servers.

    Returns
    -------
    callable
        The path of a file that a client names, after a check that it is an upload. Gradio itself checks
        those files alone that a client declares as such.
    """
    uploads = Path(inputs[0].GRADIO_CACHE).resolve()

    async def unmoved(path: str | Path | None) -> str | None:
        return None if path is None else uploaded({"path": path})

    def uploaded(file: Any) -> str:
        path = file.get("path") if isinstance(file, dict) else None
        if not isinstance(path, str | Path) or not Path(path).resolve().is_relative_to(uploads):
            raise gr.Error("Upload the file itself.", print_exception=False)
        return str(path)

    for component in inputs:
        component.async_move_resource_to_block_cache = unmoved
    return uploaded
