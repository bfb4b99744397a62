"""The pages agree with the program: links, the record's fields, every error message."""

import importlib.util
import re
from pathlib import Path

import msgspec
import pytest

from harness.commands.report import REPORT
from harness.judge.outputs import JUNIT, SUMMARY_MD, VERDICT
from harness.observe.history import METRICS
from harness.observe.results import ATTEMPTS, CAPACITY, CONTENT, RUN, SUMMARY, TIMELINES
from harness.observe.state import RunState
from harness.observe.summary import build_summary
from harness.stream.record import Attempt
from tests.docs.pages import PAGES, ROOT


def anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


LINKS = [
    (page, target)
    for page in PAGES
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    if "://" not in target
]


@pytest.mark.parametrize(("page", "target"), LINKS, ids=lambda value: Path(value).name)
def test_links_lead_somewhere(page, target):
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    assert file.exists()
    if anchor:
        assert anchor in anchors(file)


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}

    assert set() == {name for name in pages if f"]({name})" not in index}


def fields_of(struct):
    """Yield the names of *struct* and of the structs in it."""
    for field in msgspec.structs.fields(struct):
        yield field.encode_name
        for kind in (field.type, *getattr(field.type, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                yield from fields_of(kind)


def test_the_record_page_names_every_field_and_no_other():
    rows = re.findall(
        r"^\| (`.*?) \| (.*) \|$", (ROOT / "docs" / "record.md").read_text("utf-8"), re.MULTILINE
    )
    first = {word for cell, _ in rows for words in re.findall(r"`([^`]*)`", cell) for word in words.split()}
    all_words = first | {
        word for row in rows for words in re.findall(r"`([^`]*)`", row[1]) for word in words.split()
    }
    top = {field.encode_name for field in msgspec.structs.fields(Attempt)}

    assert top == first
    assert set() == set(fields_of(Attempt)) - all_words


def keys_of_rows(page):
    """The names in the first cells of a page's tables."""
    cells = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
    return [word for cell in cells for words in re.findall(r"`([^`]*)`", cell) for word in words.split()]


def test_the_results_page_names_every_file_and_every_key_of_the_summary():
    files = {
        ATTEMPTS,
        SUMMARY,
        RUN,
        TIMELINES,
        METRICS,
        CONTENT,
        CAPACITY,
        VERDICT,
        JUNIT,
        SUMMARY_MD,
        REPORT,
    }
    summary = build_summary([], RunState("r1", "g", "1", True, 0.0))

    assert sorted([*files, *summary]) == sorted(keys_of_rows("results.md"))


def messages_module():
    spec = importlib.util.spec_from_file_location("messages", ROOT / "scripts" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_error_message_can_be_found():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    messages = {text for texts in messages_module().messages().values() for text in texts}

    assert len(messages) > 150
    missing = {text for text in messages if text.replace("`", "'") not in page}
    assert set() == missing, "run python scripts/messages.py"


def test_messages_are_found_in_any_form_that_the_source_has(tmp_path):
    room = tmp_path / "swarm"
    room.mkdir()
    (room / "a.py").write_text(
        'raise UsageError(f"no {self.place_} for {name!r}: " + hint("x"))\n'
        'raise UsageError("pass --host, "\n    "or not")\nraise KeyError("never shown here")\nraise\n'
    )

    assert {"swarm": ["no PLACE for NAME: …", "pass --host, or not"]} == messages_module().messages(tmp_path)
