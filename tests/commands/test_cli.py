import pytest

from harness import __version__
from harness.cli import COMMANDS, main


def test_without_a_command_the_usage_is_an_error_and_asked_for_it_is_not(capsys):
    assert 2 == main([])
    assert capsys.readouterr().err.startswith("usage: harness COMMAND")
    assert 0 == main(["--help"])
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in COMMANDS)
    assert 0 == main(["--version"])
    assert f"harness {__version__}\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [("prob", "did you mean probe?"), ("xyz", "use one of run, probe")],
)
def test_an_unknown_command_is_one_line_with_a_hint(name, words, capsys):
    assert 2 == main([name])
    err = capsys.readouterr().err
    assert (1, True) == (err.count("\n"), words in err)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"run"}))
def test_every_command_explains_itself_and_refuses_an_unknown_option_in_one_line(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert 0 == ended.value.code
    assert f"usage: harness {name}" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([name, "--no-such-option", "x", "y", "z"])
    assert 2 == ended.value.code
    err = capsys.readouterr().err
    assert (1, "Traceback" in err) == (err.count("\n"), False)
