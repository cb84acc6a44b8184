"""The work of packaging/site.sh: site.py DIRECTORY."""
import glob
import html
import os
import posixpath
import re
import shutil
import subprocess
import sys

import markdown

STYLE = """\
:root { color-scheme: light dark; --line: #8886; --back: #8882; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto; padding: 0 1rem 4rem; }
nav { padding: .7rem 0; border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; }
nav a { margin-right: 1rem; }
h1, h2, h3 { line-height: 1.25; margin: 1.6em 0 .5em; }
section.Sh > h1 { font-size: 1.3rem; }
section.Ss > h2 { font-size: 1.1rem; }
pre, table { overflow-x: auto; }
pre { background: var(--back); padding: .7rem; }
code { background: var(--back); padding: 0 .2em; overflow-wrap: anywhere; }
pre code { background: none; padding: 0; overflow-wrap: normal; }
table { border-collapse: collapse; display: block; }
td, th { border: 1px solid var(--line); padding: .3rem .5rem; text-align: left; vertical-align: top; }
table.head, table.foot { display: none; }
.manual-text table td { border: 0; }
img { max-width: 100%; height: auto; }
a.permalink { color: inherit; text-decoration: none; }
dt { overflow-wrap: anywhere; }
dd { margin-left: 1.5rem; }
"""
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{top}style.css">
</head>
<body>
<nav><a href="{top}index.html">redlock-cli</a><a href="{top}contents.html">Manual and documents</a></nav>
<main>
{body}
</main>
</body>
</html>
"""


def anchor(heading, _separator=None):
    """As GitHub makes it, which the documents' links expect."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def documents():
    """Those for users, and how the program is made."""
    names = glob.glob("*.md") + glob.glob("docs/**/*.md", recursive=True)
    return sorted(names, key=lambda name: (name != "README.md", name.count("/"), name))


def page_of(document):
    return "index.html" if document == "README.md" else document[: -len(".md")] + ".html"


class Site:
    def __init__(self, out):
        self.out = out
        with open("CMakeLists.txt", encoding="utf-8") as file:
            self.home = re.search(r"HOMEPAGE_URL (\S+)", file.read())[1]
        self.manual = [os.path.basename(page) for page in sorted(glob.glob("man/*.[1-8]"))]

    def write(self, page, title, body):
        path = os.path.join(self.out, page)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            top = "../" * page.count("/")
            file.write(PAGE.format(title=html.escape(title), top=top, body=body))

    def target(self, link, document):
        """Where a document's link leads on the site; what is not there, at the project's home."""
        path, _, fragment = link.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(document), path))
        if path not in documents() + self.files():
            return f"{self.home}/blob/main/{path}"
        page = page_of(path) if path.endswith(".md") else path
        page = posixpath.relpath(page, posixpath.dirname(page_of(document)) or ".")
        return page + ("#" + fragment if fragment else "")

    @staticmethod
    def files():
        return glob.glob("docs/*.svg") + glob.glob("docs/*.json") + ["LICENSE"]

    def add_document(self, document):
        with open(document, encoding="utf-8") as file:
            text = file.read()
        # The names of blocks are for tests.
        text = re.sub(r"^( *```[a-z]+) run=\S+$", r"\1", text, flags=re.M)
        # Python's Markdown wants a blank line where GitHub needs none.
        body = markdown.markdown(
            text,
            extensions=["tables", "fenced_code", "toc", "sane_lists"],
            extension_configs={"toc": {"slugify": anchor}},
        )

        def link(match):
            name, where = match[1], html.unescape(match[2])
            if "://" in where or where.startswith(("#", "mailto:")):
                return match[0]
            return f'{name}="{html.escape(self.target(where, document))}"'

        body = re.sub(r'\b(href|src)="([^"]*)"', link, body)
        title = re.search(r"^# (.*)", text, re.M)[1].replace("`", "")
        self.write(page_of(document), title, body)
        return title

    def add_manual(self, page):
        body = subprocess.run(
            ["mandoc", "-T", "html", "-O", "fragment,man=%N.%S.html", f"man/{page}"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

        # Pages of other programs are not here.
        def link(match):
            name = match[1][: -len(".html")]
            return match[0] if name in self.manual else match[2]

        body = re.sub(r'<a class="Xr" href="([^"#]*)">([^<]*)</a>', link, body)
        name, section = page.rsplit(".", 1)
        title = f"{name}({section})"
        self.write(f"man/{page}.html", title, body)
        about = re.search(r'class="Nd">(.*?)</span>', body, re.S)[1]
        return title, " ".join(about.split())

    def make(self):
        os.makedirs(self.out)
        with open(os.path.join(self.out, "style.css"), "w", encoding="utf-8") as file:
            file.write(STYLE)
        for name in self.files():
            os.makedirs(os.path.dirname(os.path.join(self.out, name)), exist_ok=True)
            shutil.copy(name, os.path.join(self.out, name))
        contents = "<h1>Manual</h1>\n<ul>\n"
        for page in self.manual:
            title, about = self.add_manual(page)
            contents += f'<li><a href="man/{page}.html">{title}</a>: {about}</li>\n'
        contents += "</ul>\n<h1>Documents</h1>\n<ul>\n"
        for document in documents():
            title = self.add_document(document)
            contents += f'<li><a href="{page_of(document)}">{html.escape(title)}</a></li>\n'
        self.write("contents.html", "redlock-cli: manual and documents", contents + "</ul>")


def main():
    out = sys.argv[1]
    if os.path.exists(out):
        print(f"site: {out} is there already", file=sys.stderr)
        sys.exit(64)
    Site(out).make()
    pages = glob.glob(out + "/**/*.html", recursive=True)
    print(f"site: {len(pages)} pages in {out}")


if __name__ == "__main__":
    main()
