"""The settings of Sphinx.

The source directory is the root of the repository: ``sphinx-build -W -c docs . docs/_build/html``.
Pages outside docs/ are the notebooks, the benchmarks and the files that a repository has at its root.
"""

from __future__ import annotations

import re

import rnnlab

project = "rnnlab"
author = "the rnnlab authors"
copyright = "the rnnlab authors"
version = release = rnnlab.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx-mathjax-offline",  # the site needs no network
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
]
highlight_language = "none"  # of blocks that name no language: equations and commands
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/api/*.md",
    "notebooks/*.ipynb",
    "benchmarks/*.md",
    "datasets/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = ["docs/README.md", "docs/_build"]

html_theme = "furo"
html_title = "rnnlab"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["style.css"]
html_extra_path = ["site"]  # index.html, which leads to docs/index.html

nb_execution_mode = "off"  # outputs are committed
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's parameters give shapes, which say more
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


def _literal_equations(app, what, name, obj, options, lines):
    """Show the indented lines of a docstring, which are equations and examples, as they are written."""
    text, section, rest = re.split(r"(?m)(^\w+\n---+$|\Z)", "\n".join(lines), maxsplit=1)
    text = re.sub(r"(?<!::)\n\n(?= {4}\S)", "\n\n::\n\n", text)
    lines[:] = (text + section + rest).split("\n")


def _skip(app, what, name, obj, skip, options):
    """Leave caches out, which a forward hands to its backward, and the fields of named tuples."""
    is_field = (getattr(obj, "__doc__", None) or "").startswith("Alias for field number")
    return True if name.endswith("Cache") or is_field else None


def setup(app):
    """Connect the functions above; the first before numpydoc, which rewrites the sections of a docstring."""
    app.connect("autodoc-process-docstring", _literal_equations, priority=400)
    app.connect("autodoc-skip-member", _skip)
