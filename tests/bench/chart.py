"""Draws figures as SVG."""
import html
import math

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 760, 26, 250, 90, 44, 34
COLOURS = {"ours": "#2563eb", "others": "#8a8f98"}


def draw(title, rows):
    """Times: a row for each, on a scale of powers of ten.
    rows: (name, median, lower quartile, upper quartile, whether it is ours), in ms"""
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


def draw_lines(title, series):
    """series: (name, [(x, y), …]), a line each; both axes begin at 0"""
    colours = ("#2563eb", "#93b4f5", "#d97706", "#f2c078")
    top, bottom, left, right = TOP + 22 * len(series), 320 + TOP + 22 * len(series), 60, 720
    max_x = max(x for _, points in series for x, _ in points)
    max_y = max(y for _, points in series for _, y in points)
    step_x, step_y = step(max_x), step(max_y)
    max_y = step_y * math.ceil(max_y / step_y)

    def place(x, y):
        return (
            round(left + x / max_x * (right - left), 1),
            round(bottom - y / max_y * (bottom - top), 1),
        )

    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + BOTTOM}"'
        ' font-family="sans-serif" font-size="13">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{bottom + BOTTOM}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-weight="bold" fill="#1f2328">{html.escape(title)}</text>',
    ]
    for count in range(round(max_y / step_y) + 1):
        _, y = place(0, count * step_y)
        shapes += [
            f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="#d0d4da"/>',
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end"'
            f' fill="#57606a">{count * step_y:g}</text>',
        ]
    for count in range(int(max_x / step_x) + 1):
        x, _ = place(count * step_x, 0)
        shapes.append(
            f'<text x="{x}" y="{bottom + 20}" text-anchor="middle"'
            f' fill="#57606a">{count * step_x:g}</text>'
        )
    for number, (name, points) in enumerate(series):
        colour, y = colours[number % len(colours)], TOP + 22 * number
        line = " ".join("{},{}".format(*place(*point)) for point in points)
        shapes += [
            f'<line x1="{left}" y1="{y - 4}" x2="{left + 30}" y2="{y - 4}" stroke="{colour}"'
            ' stroke-width="3"/>',
            f'<text x="{left + 40}" y="{y}" fill="#1f2328">{html.escape(name)}</text>',
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
        ]
        for point in points:
            x, y = place(*point)
            shapes.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>')
    return "\n".join([*shapes, "</svg>", ""])


def step(max_value):
    """Of a scale: 1, 2 or 5 times a power of ten, such that there are four to ten of it."""
    power = 10 ** math.floor(math.log10(max_value / 4))
    return max(power * factor for factor in (1, 2, 5) if power * factor * 4 <= max_value)
