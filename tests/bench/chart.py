"""Draws times as an SVG: a row for each, on a scale of powers of ten."""
import html
import math

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 760, 26, 250, 90, 44, 34
COLOURS = {"ours": "#2563eb", "others": "#8a8f98"}


def draw(title, rows):
    """rows: (name, median, lower quartile, upper quartile, whether it is ours), in ms"""
    low = 10 ** math.floor(math.log10(min(row[2] for row in rows)))
    high = 10 ** math.ceil(math.log10(max(row[3] for row in rows)))
    height = TOP + ROW * len(rows) + BOTTOM

    def x(value):
        share = math.log(value / low) / math.log(high / low)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="13">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-weight="bold" fill="#1f2328">{html.escape(title)}</text>',
    ]
    tick = low
    while tick <= high * 1.001:
        for factor in range(1, 10) if tick < high else (1,):
            place, faint = x(tick * factor), factor > 1
            shapes.append(
                f'<line x1="{place}" y1="{TOP}" x2="{place}" y2="{height - BOTTOM}"'
                f' stroke="{"#f0f1f3" if faint else "#d0d4da"}"/>'
            )
        shapes.append(
            f'<text x="{x(tick)}" y="{height - 12}" text-anchor="middle"'
            f' fill="#57606a">{tick:g} ms</text>'
        )
        tick *= 10
    for number, (name, median, lower, upper, ours) in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        colour = COLOURS["ours" if ours else "others"]
        shapes += [
            f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end" fill="#1f2328"'
            f'{" font-weight=" + chr(34) + "bold" + chr(34) if ours else ""}>'
            f"{html.escape(name)}</text>",
            f'<line x1="{x(lower)}" y1="{y}" x2="{x(upper)}" y2="{y}" stroke="{colour}"'
            ' stroke-width="5" stroke-linecap="round" opacity="0.35"/>',
            f'<circle cx="{x(median)}" cy="{y}" r="5" fill="{colour}"/>',
            f'<text x="{x(upper) + 10}" y="{y + 4}" fill="#1f2328">{median:.1f}</text>',
        ]
    return "\n".join([*shapes, "</svg>", ""])
