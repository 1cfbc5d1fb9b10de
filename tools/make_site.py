"""Build the documentation site into site/, without the net: `make docs`.

The pages are gathered in build/site-source: docs/ as it is, README.md as the first page, the API reference (reference.py), and files
outside of docs/ that pages link to, such as examples, as pages of their own. So every link of a page works on the site. Then Sphinx
renders them; a warning is an error.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

import reference
from sphinx.cmd.build import build_main

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "build" / "site-source"
LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
# Pages whose text is a file outside of docs/.
FROM_ROOT = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
LANGUAGES = {".py": "python", ".md": "markdown", ".json": "json", ".toml": "toml", ".yml": "yaml"}

# What the navigation shows, in this order. Pages that do not exist are left out; those that stand nowhere come last.
CONTENTS = {
    "Guide": """coming-from-torch autograd numpy notebooks ci cuda kernels compile distributed look-inside viewer errors nn graphs dispatch
    types gallery limits""",
    "Reference": "api/index",
    "Essay": "from-scratch",
    "Figures": "benchmarks operations libraries torch_tests",
    "Inside": "layout rules adr contributing release security changelog",
}
SETTINGS = """
project = "retrograd"
author = "the retrograd authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "retrograd"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # it fetches pages, which browsers refuse a site that is opened from disk
myst_heading_anchors = 4
maximum_signature_line_length = 100
toc_object_entries = False  # a navigation of 4,000 names would be the larger part of every page
python_use_unqualified_type_names = True
exclude_patterns = ["adr/0000-template.md"]
suppress_warnings = [
    "misc.highlighting_failure",  # tracebacks and output that is no program
    "ref.python",  # types in signatures are short names, which may stand in several modules
]
"""


def main() -> int:
    """Gather the pages, and render them."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    (SOURCE / "conf.py").write_text(SETTINGS)
    shown: dict[str, str] = {}  # files outside of docs/ by the page that shows them
    for page in sorted((ROOT / "docs").rglob("*.md")):
        uri = page.relative_to(ROOT / "docs").as_posix()
        (SOURCE / uri).write_text(relinked(page.read_text(), f"docs/{uri}", uri, shown))
    for uri, path in FROM_ROOT.items():
        (SOURCE / uri).write_text(relinked((ROOT / path).read_text(), path, uri, shown))
    (SOURCE / "adr" / "index.md").write_text(folder_page("Decisions", SOURCE / "adr"))
    (SOURCE / "api").mkdir()
    for name, text in reference.pages().items():
        (SOURCE / "api" / f"{name}.rst").write_text(text)
    for uri, path in shown.items():
        (SOURCE / uri).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / uri).write_text(source_page(path))
    with open(SOURCE / "index.md", "a") as first:
        first.write(navigation())
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    return build_main(
        ["-W", "--keep-going", "-q", "-d", str(ROOT / "build" / "doctrees"), str(SOURCE), str(ROOT / "site")]
    )


def relinked(text: str, path: str, uri: str, shown: dict[str, str]) -> str:
    """Let the links of a file lead to pages of the site. `path` is the file in the repository, `uri` its page."""

    def moved(match: re.Match[str]) -> str:
        link = match[1]
        if re.match(r"\w+:", link):
            return link
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
        return posixpath.relpath(page_of(target, shown), posixpath.dirname(uri) or ".")

    return LINK.sub(moved, text)


def page_of(target: str, shown: dict[str, str]) -> str:
    """Return the page that shows a file or a folder of the repository."""
    for uri, path in FROM_ROOT.items():
        if target == path:
            return uri
    if target == "docs/adr":
        return "adr/index.md"
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if (ROOT / target).is_dir():
        target += "/README.md"
    uri = f"source/{target.removesuffix('.md').replace('.', '_')}.md"
    shown[uri] = target
    return uri


def source_page(path: str) -> str:
    """Return a page that shows a file: Markdown as it is, anything else as code."""
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return "---\norphan: true\n---\n\n" + text
    return f"---\norphan: true\n---\n\n# {path}\n\n````{LANGUAGES.get(Path(path).suffix, 'text')}\n{text}\n````\n"


def folder_page(title: str, folder: Path) -> str:
    """Return a page that lists those of a folder."""
    pages = sorted(path.stem for path in folder.glob("*.md") if path.stem != "0000-template")
    return f"# {title}\n\n{tree('', pages)}"


def tree(caption: str, pages: list[str]) -> str:
    options = f":caption: {caption}\n:hidden:\n" if caption else ""
    return "```{toctree}\n:maxdepth: 1\n" + options + "\n" + "\n".join(pages) + "\n```\n"


def navigation() -> str:
    """Return the table of contents; a page that another branch writes, and this one has not, is left out."""
    there = {
        path.relative_to(SOURCE).with_suffix("").as_posix()
        for path in [*SOURCE.glob("*.md"), *SOURCE.glob("api/index.rst")]
    }
    named = {part: [name for name in names.replace("adr", "adr/index").split()] for part, names in CONTENTS.items()}
    rest = sorted(there - {"index", *(name for names in named.values() for name in names)})
    parts = {part: [name for name in names if name in there or name == "adr/index"] for part, names in named.items()}
    return "\n" + "\n".join(tree(part, names) for part, names in [*parts.items(), ("More", rest)] if names)


if __name__ == "__main__":
    sys.exit(main())
