"""How to install optional packages, from where this package itself was installed.

pip notes where a package came from in `direct_url.json` (PEP 610): a folder, an archive, or a
repository. Only what came from a package index has no such note, and can be asked for by name.
"""

import importlib.metadata
import json
from urllib.parse import unquote, urlparse


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra, such as "plot"."""
    return f'pip install "{_source(extra)}"'


def _source(extra: str) -> str:
    try:
        note = importlib.metadata.distribution("twofold").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        note = None  # run from a folder that is not installed
    origin = json.loads(note) if note else {}
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"twofold[{extra}] @ {origin['vcs_info'].get('vcs', 'git')}+{url}"
    if "dir_info" in origin and url.startswith("file:"):
        return f"{unquote(urlparse(url).path)}[{extra}]"
    return f"twofold[{extra}] @ {url}" if url else f"twofold[{extra}]"
