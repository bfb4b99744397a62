"""Shapes: what the load is at each moment, and what is no shape."""

import pytest

from harness.load.shapes import ShapeError, parse_shape


@pytest.mark.parametrize(
    ("text", "loads", "duration_s"),
    [
        # straight up, then level
        ("ramp:to=100,over=10s,hold=5s", {0: 1, 5: 50, 9.99: 100, 10: 100, 14.9: 100, 15: None}, 15.0),
        ("ramp:from=20,to=10,over=10s", {0: 20, 5: 15, 9.99: 10, 10: None}, 10.0),
        # each step at once, the last one no higher than `to`
        (
            "steps:from=10,to=25,step=10,each=1m",
            {0: 10, 59.9: 10, 60: 20, 120: 25, 179: 25, 180: None},
            180.0,
        ),
        ("steps:from=5,to=5,step=1,each=2s", {0: 5, 1.9: 5, 2: None}, 2.0),
        ("steps:from=3,to=1,step=1,each=1s", {0: 3, 1: 2, 2: 1, 3: None}, 3.0),
        # a jump up and a jump down
        (
            "spike:base=2,peak=50,after=10s,for=1s,rest=4s",
            {0: 2, 9.9: 2, 10: 50, 10.9: 50, 11: 2, 14.9: 2, 15: None},
            15.0,
        ),
        ("soak:load=40,for=1h,ramp=10s", {0: 1, 10: 40, 3600: 40, 3610: None}, 3610.0),
    ],
)
def test_a_shape_s_load_at_each_moment(text, loads, duration_s):
    shape = parse_shape(text)

    assert loads == {at: shape.at(at) for at in loads}
    assert duration_s == shape.duration_s


def test_the_peak_is_the_highest_load():
    assert 50 == parse_shape("spike:base=2,peak=50,after=10s,for=1s").peak


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rmp:to=5", "unknown shape 'rmp' (ramp, steps, spike, soak, capacity); did you mean ramp?"),
        ("ramp:to=5", "ramp needs over=…, as in ramp:to=100,over=5m,hold=10m"),
        ("ramp:to=5,over=5", "over: '5' is not a duration"),
        ("ramp:to=5,over=5s,speed=2", "ramp has no parameter 'speed' (it has: from, to, over, hold)"),
        ("ramp:to=5,to=6,over=1s", "to is given twice"),
        ("ramp:to", "expected NAME=VALUE, got 'to'"),
        ("ramp:to=0,over=1s", "to: expected a whole number above 0, got '0'"),
        ("steps:from=1,to=9,step=0,each=1s", "step: expected a whole number above 0"),
        ("steps:from=1,to=9,step=1.5,each=1s", "step: expected a whole number above 0"),
        ("ramp:to=5,over=0s", "lasts no time at all"),
    ],
)
def test_what_is_no_shape_is_one_line(text, words):
    with pytest.raises(ShapeError) as caught:
        parse_shape(text)

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
