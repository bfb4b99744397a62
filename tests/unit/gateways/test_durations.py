"""Durations: a number and a unit, never a bare number."""

import pytest

from harness.gateways import DurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("50us", 50e-6),
        ("1m30s", 90.0),
        ("1h2m3s", 3723.0),
        (".5s", 0.5),
        ("5.s", 5.0),
        (" 10 s ", 10.0),
        ("0s", 0.0),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    assert seconds == pytest.approx(parse_duration(text))


@pytest.mark.parametrize(
    "text", ["", " ", "5", "1.5", "s", "5 sec", "-5s", "+5s", "5S", "1,5s", "5s5", "5d", "1e3s", "infs", "٥s"]
)
def test_what_is_no_duration_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)

    assert f"{text!r} is not a duration: write a number and a unit (us ms s m h), as in 1.5s" == str(
        caught.value
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.0000123, "12.3 µs"),
        (0.000999, "999 µs"),
        (0.0009996, "1.00 ms"),  # rounding carries into the next unit
        (0.00123, "1.23 ms"),
        (0.0123, "12.3 ms"),
        (0.123, "123 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (1.5, "1.50 s"),
        (9.995, "10.0 s"),
        (62.04, "62.0 s"),
        (99.96, "100 s"),
        (119.4, "119 s"),
        (120.0, "2m00s"),
        (165.0, "2m45s"),
        (3599.6, "1h00m"),
        (3723.0, "1h02m"),
        (-1.5, "-1.50 s"),
        (-165.0, "-2m45s"),
    ],
)
def test_format(seconds: float, text: str) -> None:
    assert text == format_duration(seconds)
