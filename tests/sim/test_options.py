import pytest

from harness.sim.options import listing, main


def test_the_list_has_one_aligned_line_per_fault_with_the_healthy_one_first(capsys):
    assert 0 == main(["--list"])

    lines = capsys.readouterr().out.splitlines()
    assert listing().splitlines() == lines
    assert lines[0].startswith("ok ")
    column = lines[0].index("a healthy answer")
    assert all(line[column - 1] == " " != line[column] for line in lines)
    assert 100 < len(lines)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--mix", "stal-mid=4"], "--mix: unknown fault 'stal-mid': did you mean stall-mid"),
        (["--gateway", "hopbas"], "did you mean hopbase?"),
        (["--dialect", "offical"], "did you mean official?"),
        (["--gap", "20"], "--gap: '20' is not a duration"),
        (["--time-scale", "0"], "--time-scale"),
        (["--tokens", "0"], "--tokens"),
        (["--jitter", "2"], "--jitter"),
        (["--slots", "0"], "--slots"),
        (["--queue"], "--slots N"),
        (["--port", "70000"], "--port"),
        (["--truth", "/nowhere/truth.jsonl"], "--truth: cannot write /nowhere/truth.jsonl"),
    ],
)
def test_a_wrong_option_is_one_line_on_stderr_and_exit_2(capsys, arguments, says):
    assert 2 == main([*arguments, "--port", "0"] if "--port" not in arguments else arguments)

    out, err = capsys.readouterr()
    assert "" == out
    assert 1 == err.count("\n")
    assert says in err
