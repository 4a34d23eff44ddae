"""How the pages are built: python -m sphinx -W --keep-going -q docs build/site"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fastndcg import __version__ as release  # noqa: E402, F401 - found by the path above, and shown by Sphinx
from scripts import pages  # noqa: E402

project = html_title = "fastndcg"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4

html_theme = "furo"  # it loads nothing from the network; `check_site` looks
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sphinx = html_show_copyright = html_copy_source = False

default_role = "py:obj"  # in a docstring `Rankings` is a link to Rankings
suppress_warnings = ["ref.python"]  # `summary()` may be one of several, and is no link then
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_mock_imports = [
    "catboost", "dask", "ir_measures", "lightgbm", "pyspark", "ray",
    "sklearn", "xgboost",
]  # fmt: skip
autodoc_typehints = "none"  # docstrings say what is taken, in words
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_maximum_signature_line_length = 100


def setup(app: Any) -> None:
    app.connect("source-read", write_page)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("doctree-read", unlink_measures)
    app.connect("build-finished", check_site)


def write_page(_: Any, name: str, source: list[str]) -> None:
    source[0] = pages.built(source[0], f"docs/{name}.md")


def hide_constructor(_: Any, what: str, *__: Any) -> tuple[str, None] | None:
    """Classes are made by functions, and by constructors with names."""
    return ("", None) if what == "class" else None


def unlink_measures(_: Any, page: Any) -> None:
    """In the text of a docstring nDCG@10 is not an address of mail."""
    for link in list(page.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(nodes.Text(link.astext()))


def check_site(app: Any, error: Exception | None) -> None:
    if error is None:
        pages.check_offline(Path(app.outdir))
