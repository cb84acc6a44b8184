#!/usr/bin/python3
"""Makes the site with packaging/site.sh, and fails when a link of it leads nowhere, an anchor
included, a page is not reached from the first one, or a page asks for anything from elsewhere.

usage: tests/site.py [DIRECTORY]     DIRECTORY: where to leave it
"""
import html.parser
import os
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.anchors, self.open = [], [], {""}, []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.anchors.add(attributes["id"])
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag in ("img", "script", "link"):
            self.loaded.append(attributes.get("src") or attributes.get("href"))


def check(site):
    problems = []
    pages = {}
    for directory, _, names in os.walk(site):
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), site)
            pages[path] = Page(os.path.join(site, path)) if path.endswith(".html") else None
    reached, links = {"index.html"}, 0
    to_read = ["index.html"]
    while to_read:
        name = to_read.pop()
        page = pages[name]
        for link in page.links + page.loaded:
            if "://" in link:
                if link in page.loaded:
                    problems.append(f"{name}: loads {link}")
                continue
            links += 1
            path, _, fragment = link.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if path not in pages:
                problems.append(f"{name}: {link} leads nowhere")
                continue
            if pages[path] and fragment not in pages[path].anchors:
                problems.append(f"{name}: {link}: no such anchor")
            if pages[path] and path not in reached:
                reached.add(path)
                to_read.append(path)
    for name, page in pages.items():
        if page and name not in reached:
            problems.append(f"{name}: no page leads there")
    for problem in problems:
        print(f"site: {problem}")
    print(f"site: {len(reached)} pages, {links} links, {len(problems)} problems")
    return not problems and len(reached) > 40


def main():
    with tempfile.TemporaryDirectory() as work:
        site = sys.argv[1] if len(sys.argv) > 1 else work + "/site"
        subprocess.run([ROOT + "/packaging/site.sh", site], check=True)
        sys.exit(0 if check(site) else 1)


if __name__ == "__main__":
    main()
