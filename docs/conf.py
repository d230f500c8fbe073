"""Configuration of the documentation site: ``make docs`` builds it offline."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extension"))

from sphinx.util.inspect import TypeAliasForwardRef

import crowdtree

# pages run the command of this environment
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

project = "crowdtree"
release = version = crowdtree.__version__
html_title = f"crowdtree {release}"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference", "search_words"]

source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
exclude_patterns = ["_extension", "_templates", "figures"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "image/svg+xml", 5)]  # drawings as pictures

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("ArrayLike", "FloatArray", "IntArray", "NDArray")}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # inside tuple[...] it is shown by repr
python_maximum_signature_line_length = 80
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
default_role = "code"
highlight_language = "text"  # blocks that do not say otherwise are commands

html_theme = "furo"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": False}
logging.getLogger("traitlets").setLevel(logging.WARNING)

# kernels of the pages: no word about local sockets, and nothing of the user's own configuration
profile = tempfile.TemporaryDirectory(prefix="crowdtree-docs-")
(Path(profile.name) / "profile_default").mkdir()
config = Path(profile.name, "profile_default", "ipython_kernel_config.py")
config.write_text('get_config().IPKernelApp.log_level = "ERROR"\n', encoding="utf-8")
os.environ["IPYTHONDIR"] = profile.name
