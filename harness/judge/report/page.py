"""Puts the page together: head, first paragraph, runs side by side, sections, and the one door for words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from harness import __version__
from harness.judge.estimates import estimate_rate, estimate_time
from harness.judge.metrics import METRICS, QUANTILES
from harness.judge.quantities import format_value
from harness.judge.report import charts
from harness.judge.report.markup import Html, join, section, table, tag
from harness.judge.report.picture import Picture
from harness.judge.report.sections import all_sections
from harness.judge.report.words import lead

# No script, no image, no font, no connection: what a server wrote could not run even if it were not escaped.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SIDE_BY_SIDE = (
    ("success_rate", "rate"), ("error_rate", "rate"), ("stall_rate", "rate"), ("unfinished_rate", "rate"),
    ("ttft", "p50"), ("ttft", "p95"), ("ttft", "p99"), ("tpot", "p50"), ("gap_max", "p95"),
    ("duration", "p50"),
)  # fmt: skip


def build_report(folders: Sequence[Path], title: str = "", redact: bool = False) -> str:
    """Return the page for the runs in *folders*. Raises `ResultsError`.

    With *redact* hosts, models and tags are blacked out, and what servers wrote is dropped.
    """
    pictures = [Picture(folder) for folder in folders]
    if redact:
        for picture in pictures:
            picture.drop_words()
    name = title or (pictures[0].facts.name if len(pictures) == 1 else f"{len(pictures)} runs")
    body = [_head(name, pictures), *_banners(pictures)]
    if len(pictures) == 1:
        body += [_lead(pictures[0]), *all_sections(pictures[0])]
    else:
        body += [side_by_side(pictures)]
        body += [_folded(picture, first) for first, picture in zip(_firsts(), pictures, strict=False)]
    body.append(_foot())
    main = str(tag("main", *body))
    if redact:
        main = black_out(main, secrets(pictures))
    style = resources.files("harness.judge.report").joinpath("style.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(black_out_text(name, secrets(pictures)) if redact else name)}</title>\n"
        f"<style>\n{style}</style>\n</head>\n<body>\n{main}\n</body>\n</html>\n"
    )


def side_by_side(pictures: Sequence[Picture]) -> Html:
    """Return the runs as columns of one table, and their first tokens as curves in one drawing."""
    names = _told_apart([picture.facts.name for picture in pictures])
    rows = [("verdict", *(_badge(picture) for picture in pictures)),
            ("requests", *(f"{sum(picture.requests.values()):,}" for picture in pictures))]  # fmt: skip
    for metric, stat in _SIDE_BY_SIDE:
        words = metric.replace("_", " ") if stat == "rate" else f"{metric} {stat}"
        rows.append((words, *(_number(picture, metric, stat) for picture in pictures)))
    samples = {
        name: picture.evidence.select({}).sample("ttft", "attempt")
        for name, picture in zip(names, pictures, strict=True)
    }
    drawn = charts.shares_that_got_there(samples, "time to first token")
    about = "All protocols together. Whether a difference is more than chance: harness compare."
    return section("Side by side", table(("", *names), rows), drawn, about=about)


def _told_apart(names: Sequence[str]) -> list[str]:
    """Return *names*, with a number behind those that occurred before: folders may hold runs of one name."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def secrets(pictures: Iterable[Picture]) -> list[str]:
    """Return every name that says whose gateway it was: hosts, addresses, models, tags."""
    found: set[str] = set()
    for picture in pictures:
        run = picture.facts.run
        url = str(run.get("base_url") or "")
        found |= {url, urlsplit(url).netloc, urlsplit(url).hostname or ""}
        found |= {*picture.peers, *(peer.rpartition(":")[0] for peer in picture.peers)}
        found |= set(picture.evidence.labels("model"))
        models = run.get("models")
        found |= {str(m) for m in models.values()} if isinstance(models, dict) else set()
        found |= {f"{key}={value}" for key, value in picture.facts.tags.items()}
        found |= set(picture.facts.tags.values())
    return sorted((word for word in found if len(word) > 1), key=len, reverse=True)


def black_out(html: str, words: Sequence[str]) -> str:
    """Return *html* with *words* blacked out wherever text is shown, never inside tags' own syntax."""
    hide = _hider([escape(word) for word in words])
    html = re.sub(r">([^<]+)<", lambda m: f">{hide(m[1])}<", html)
    return re.sub(r'aria-label="([^"]*)"', lambda m: f'aria-label="{hide(m[1])}"', html)


def black_out_text(text: str, words: Sequence[str]) -> str:
    """Return *text* with *words* blacked out."""
    return _hider(words)(text)


def _hider(words: Sequence[str]) -> Callable[[str], str]:
    if not words:
        return lambda text: text
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words))
    return lambda text: pattern.sub("████", text)


def _head(title: str, pictures: Sequence[Picture]) -> Html:
    gateways = ", ".join(dict.fromkeys(picture.facts.gateway for picture in pictures))
    badges = [_badge(pictures[0])] if len(pictures) == 1 else []
    return join([tag("h1", title), tag("p", f"Streaming load test of {gateways} ", *badges, css="byline")])


def _banners(pictures: Sequence[Picture]) -> list[Html]:
    played = [picture for picture in pictures if picture.simulated]
    if not played:
        return []
    scales = sorted({picture.facts.time_scale for picture in played})
    scale = f" at {', '.join(f'{s:g}' for s in scales)} of real time" if scales != [1.0] else ""
    which = "" if len(played) == len(pictures) else f" ({', '.join(p.facts.name for p in played)})"
    words = f"SIMULATED{scale}{which}: a played gateway. These numbers say nothing about a real one."
    return [tag("p", words, css="banner")]


def _lead(picture: Picture) -> Html:
    word = str(picture.verdict.get("verdict")) if picture.verdict else ""
    word = word or ("invalid" if picture.judged.invalid else "")
    return tag("p", lead(picture), css=f"lead {word}".strip())


def _folded(picture: Picture, first: bool) -> Html:
    inside = join([tag("summary", picture.facts.name), _lead(picture), *all_sections(picture)])
    return Html(f"<details{' open' if first else ''}>{inside}</details>")


def _firsts() -> Iterable[bool]:
    yield True
    while True:
        yield False


def _badge(picture: Picture) -> Html:
    if picture.verdict is not None:
        word = str(picture.verdict.get("verdict"))
    else:
        word = "invalid" if picture.judged.invalid else "not judged"
    return tag("span", word.replace("_", " "), css=f"badge {word.replace(' ', '_')}")


def _number(picture: Picture, metric: str, stat: str) -> str:
    cells = picture.evidence.select({})
    if stat == "rate":
        estimate = estimate_rate(cells, metric)
    else:
        estimate = estimate_time(cells, metric, QUANTILES[stat], view="attempt", failed="count")
    if estimate is None:
        return "–"
    text = format_value(estimate.value, METRICS[metric].kind)
    return f"≥ {text}" if estimate.at_least else text


def _foot() -> Html:
    words = (
        f"Made by harness {__version__} from the run's exact records. Percentiles without unfinished streams "
        "are interpolated (type 7), with them Kaplan–Meier. The page holds no script and loads nothing."
    )
    return tag("footer", words)
