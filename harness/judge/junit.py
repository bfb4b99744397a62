"""``junit.xml``: one suite per gate file, one case per gate, for every CI that draws test results.

A missed gate is a *failure*; no data and an invalid run are *errors* (something could not be judged);
skipped and forgiven gates are *skipped*. A missed gate that only warns is a passed case with its words in
the output.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from harness.judge.verdict import Result, Verdict

# What XML 1.0 cannot hold in any spelling.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(verdict: Verdict) -> bytes:
    """Return the verdict as JUnit XML in the form that Jenkins, GitLab and GitHub's reporters read."""
    cases = [_case(result, verdict) for result in verdict.results]
    if verdict.invalid:
        cases.insert(0, _validity(verdict))
    tally = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    numbers = {name: str(count) for name, count in tally.items()}
    root = ET.Element("testsuites", {"name": "harness gate", **numbers, "time": "0"})
    suite = ET.SubElement(root, "testsuite", {"name": _clean(verdict.gates.source), **numbers, "time": "0"})
    if verdict.started_at is not None:
        suite.set("timestamp", f"{datetime.fromtimestamp(verdict.started_at, UTC):%Y-%m-%dT%H:%M:%S}")
    _properties(
        suite,
        {
            "run": verdict.run,
            "gateway": verdict.gateway,
            "simulated": str(verdict.simulated).lower(),
            "time_scale": f"{verdict.time_scale:g}",
            "verdict": verdict.word,
        },
    )
    suite.extend(cases)
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _case(result: Result, verdict: Verdict) -> ET.Element:
    gate = result.gate
    case = ET.Element(
        "testcase", {"name": _clean(gate.id), "classname": _clean(f"gates.{gate.metric}"), "time": "0"}
    )
    _properties(
        case,
        {
            "measure": str(gate),
            "view": gate.view,
            "value": result.value_text,
            "interval": result.interval_text,
            "n": str(result.estimate.n if result.estimate else 0),
            "limit": f"{gate.op} {gate.limit_text}",
        },
    )
    words = f"{gate}: {result.reason}\n{gate.why}"
    if verdict.invalid:
        _child(case, "skipped", "the run is invalid: neither passed nor failed", None)
    elif result.word == "fail":
        _child(case, "failure", result.reason, words, "gate")
    elif result.blocking:
        _child(case, "error", f"{result.word.replace('_', ' ')}: {result.reason}", words, result.word)
    elif result.word in ("skipped", "no_data", "inconclusive"):
        _child(case, "skipped", f"{result.word.replace('_', ' ')}: {result.reason}", None)
    elif result.word == "warn":
        ET.SubElement(case, "system-out").text = _clean(f"WARNING {words}")
    return case


def _validity(verdict: Verdict) -> ET.Element:
    case = ET.Element("testcase", {"name": "run is valid", "classname": "run", "time": "0"})
    text = "\n".join(reason.text for reason in verdict.invalid)
    _child(case, "error", verdict.invalid[0].text, text, verdict.invalid[0].code)
    return case


def _child(case: ET.Element, tag: str, message: str, text: str | None, type_: str | None = None) -> None:
    child = ET.SubElement(case, tag, {"message": _clean(message)})
    if type_ is not None:
        child.set("type", type_)
    if text is not None:
        child.text = _clean(text)


def _properties(parent: ET.Element, values: dict[str, str]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", {"name": name, "value": _clean(value)})


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
