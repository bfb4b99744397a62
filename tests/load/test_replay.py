"""Logs as plans: public formats, named columns, and lines that are wrong."""

import time

import pytest

from harness.load.arrivals import Order
from harness.load.replay import ReplayError, read_orders


@pytest.fixture
def log(tmp_path):
    def write(text, name="log"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return str(path)

    return write


def test_a_csv_of_a_cloud_s_llm_trace(log):
    """Seven digits of a second, as .NET writes them."""
    path = log(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n"
        "2023-11-16 18:15:50.9951690,396,109\n"
    )

    first, second = read_orders(path)
    assert Order(0.0, prompt_tokens=374, max_tokens=44) == first
    assert pytest.approx(4.314579) == second.at_s
    assert (396, 109) == (second.prompt_tokens, second.max_tokens)


def test_json_lines_with_times_in_milliseconds(log):
    path = log(
        '{"timestamp": 27000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n\n'
        '{"timestamp": 30500, "input_length": 7322, "output_length": 490, "hash_ids": [0]}\n'
    )

    found = read_orders(path, "time=timestamp:ms")
    assert [0.0, 3.5] == [order.at_s for order in found]
    assert [6758, 7322] == [order.prompt_tokens for order in found]


def test_a_log_out_of_order_is_put_in_order_and_begins_at_zero(log):
    found = read_orders(log("time,model\n105.5,b\n100,a\n103,c\n"))

    assert [(0.0, "a"), (3.0, "c"), (5.5, "b")] == [(order.at_s, order.model) for order in found]


def test_prompts_and_protocols_are_replayed_too(log):
    path = log(
        '{"ts": 1, "prompt": "Hi", "protocol": "messages"}\n'
        '{"ts": 2, "messages": [{"role": "user", "content": "Ho"}], "max_tokens": 5}\n'
    )

    first, second = read_orders(path)
    assert ({"role": "user", "content": "Hi"},) == first.messages
    assert "messages" == first.protocol
    assert ({"role": "user", "content": "Ho"},) == second.messages
    assert 5 == second.max_tokens


def test_columns_of_other_names_are_named(log):
    found = read_orders(log("when;x,in\n1,10\n2,20\n"), "time=when;x,prompt_tokens=in")

    assert [10, 20] == [order.prompt_tokens for order in found]


def test_a_date_without_a_zone_is_utc_and_one_with_a_zone_is_not(log, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    found = read_orders(log("time\n2026-01-31T12:00:00\n2026-01-31T14:00:01+02:00\n"))

    monkeypatch.undo()
    time.tzset()
    assert [0.0, 1.0] == [order.at_s for order in found]


def test_an_empty_field_is_as_good_as_none(log):
    assert [Order(0.0)] == list(read_orders(log("time,prompt_tokens,max_tokens\n5,,0\n")))


@pytest.mark.parametrize(
    ("text", "columns", "words"),
    [
        ("", "", "holds no request"),
        ("a,b\n1,2\n", "", "line 2: no time column (it has: a, b): name it with --replay-columns time=NAME"),
        ("a\n1\n", "time=b", "line 2: no time column 'b' (it has: a)"),
        ("time\n1\n", "model=m", "has no column 'm' for model (it has: time)"),
        ("time\n1\nsoon\n", "", "line 3: expected a number or a date as in 2026-01-31T12:00:00Z"),
        ("time,b\n1\n", "", "line 2: not as many fields as the header has"),
        ('{"time": 1}\n{"time": }\n', "", "line 2: not JSON"),
        ('{"time": 1}\n[1]\n', "", "line 2: expected a JSON object"),
        ('{"time": NaN}\n', "", "line 1: not JSON"),
        ('{"time": true}\n', "", "line 1: expected a number as time, got True"),
        ("time,prompt_tokens\n1,many\n", "", "line 2: expected a whole number as prompt_tokens, got 'many'"),
        ("time,prompt_tokens\n1,0\n", "", "line 2: expected 1 or more as prompt_tokens, got '0'"),
        ("time,protocol\n1,grpc\n", "", "line 2: expected a protocol of chat, responses, messages"),
        ('{"time": 1, "messages": "Hi"}\n', "", "line 1: expected messages as in"),
        ("time\n1\n", "clock=time", "expected COLUMN=NAME with one of time, prompt"),
        ("time\n1\n", "time=time:min", "expected a unit of s, ms, us, ns, got 'min'"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(log, text, columns, words):
    with pytest.raises(ReplayError) as caught:
        read_orders(log(text), columns)

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_no_text(log, tmp_path):
    with pytest.raises(ReplayError, match=r"cannot read .*No such file"):
        read_orders(str(tmp_path / "nothing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReplayError, match="not UTF-8 text"):
        read_orders(str(tmp_path / "binary"))
