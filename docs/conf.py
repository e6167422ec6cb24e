"""How the documentation is built: `python -m sphinx -W -q -b html docs build/docs`, without network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "Towpath"
author = "The Towpath authors"
copyright = "2026, the Towpath authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Towpath"
html_show_sphinx = False
myst_heading_anchors = 3
exclude_patterns = ["_build"]
