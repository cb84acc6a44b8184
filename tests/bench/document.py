"""Tables in Markdown, and the documents that they stand in."""
import os

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")


def table(head, rows):
    """In Markdown; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def write(name, text):
    with open(f"{DOCS}/{name}", "w", encoding="utf-8") as file:
        file.write(text)


def fill(name, texts):
    """Puts each text where the document has a place for it: <!-- measured: its name -->."""
    with open(f"{DOCS}/{name}", encoding="utf-8") as file:
        document = file.read()
    for place, text in texts.items():
        begin, end = f"<!-- measured: {place} -->", "<!-- end -->"
        before, mark, rest = document.partition(begin)
        if not mark or end not in rest:
            raise SystemExit(f"{name} has no place for {place}")
        document = f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}"
    write(name, document)
