import pytest

from harness.load.prompts import BUILT_IN, Prompt, PromptsError, read_prompts


def written(tmp_path, data):
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(data)
    return str(path)


def test_texts_and_conversations_whatever_ends_the_lines(tmp_path):
    path = written(
        tmp_path,
        b"\xef\xbb\xbf"  # as some editors begin a file
        b'{"prompt": "one"}\r\n\n{"messages": [{"role": "system", "content": "s"}, '
        b'{"role": "user", "content": [{"type": "text", "text": "two"}]}], "note": "ignored"}',
    )
    one, two = read_prompts(path)

    assert Prompt.of("one") == one
    assert ["system", "user"] == [message["role"] for message in two.messages]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"prompt": ', "not JSON"),
        (b'"text"', "expected"),
        (b'{"prompt": ""}', "expected"),
        (b'{"prompt": 5}', "expected"),
        (b'{"messages": []}', "expected"),
        (b'{"messages": [{"role": "user"}]}', "expected"),
        (b'{"prompt": "\xff"}', "not JSON"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(line, words, tmp_path):
    path = written(tmp_path, b'{"prompt": "fine"}\n\n' + line + b"\n")

    with pytest.raises(PromptsError) as caught:
        read_prompts(path)

    assert f"{path}, line 3: {words}" in str(caught.value)
    assert '{"prompt": "…"}' in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_a_file_without_a_prompt_says_what_one_looks_like(data, tmp_path):
    with pytest.raises(PromptsError, match="holds no prompt: write one JSON object a line"):
        read_prompts(written(tmp_path, data))


def test_the_built_in_ones_differ_in_length():
    lengths = [len(prompt.messages[0]["content"]) for prompt in BUILT_IN]

    assert lengths == sorted(set(lengths))
    assert lengths[0] < 50 < 2000 < lengths[-1]
