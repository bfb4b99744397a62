"""The options outside the command line: files that Locust reads, the environment, lists."""

from locust.argument_parser import get_empty_argument_parser

import json

from harness.swarm.options import add_options

SHORT = ("--headless", "-t", "1s", "-u", "1", "--only-summary")
ALL = {
    "host": "sim",
    "gateway": "hopbase",
    "time-scale": "0.02",
    "protocols": "chat=2",
    "metrics-port": "0",
    "no-preflight": "true",
    "limit": ["progress=7s", "total.warn=9s"],
    "tag": ["build=1", "region=eu"],
    "header": ["X-A=1, 2", "X-B=3"],
    "seed": "5",
}


def toml():
    lines = [f"{name} = {json.dumps(value)}" for name, value in ALL.items()]
    return {"pyproject.toml": "\n".join(["[tool.locust]", *lines])}, {}


def conf():
    lines = [
        f"{name} = {json.dumps(value) if isinstance(value, list) else value}" for name, value in ALL.items()
    ]
    return {"locust.conf": "\n".join(lines)}, {}


def environment():
    env = {
        f"LOCUST_{name.replace('-', '_').upper()}": f"[{', '.join(value)}]"
        if isinstance(value, list)
        else value
        for name, value in ALL.items()
        if name != "header"  # a comma in a value needs a file, or the command line
    }
    return {}, env


def test_every_source_of_options_that_locust_has(launch, tmp_path):
    runs = {}
    for source in (toml, conf, environment):
        folder = tmp_path / source.__name__
        folder.mkdir()
        files, env = source()
        for name, text in files.items():
            (folder / name).write_text(text)
        runs[folder] = launch("run", *SHORT, cwd=folder, **env)

    for folder, process in runs.items():
        assert 0 == process.wait(), process.err
        about = json.loads((folder / "results" / "latest" / "run.json").read_text())
        found = (about["gateway"], about["time_scale"], about["protocols"], about["seed"])
        assert ("sim:hopbase", 0.02, {"chat": 2}, 5) == found
        assert {"build": "1", "region": "eu"} == about["tags"]
        limits = about["limits"]
        assert (7.0, 9.0) == (limits["progress"]["fail_s"], limits["total"]["warn_s"])
        assert about["options"]["no_preflight"] is True


def test_a_repeated_option_adds_and_the_command_line_wins_over_a_file(options):
    assert "a=1,b=2" == options("--tag", "a=1", "--tag", "b=2").tag
    assert "X-A=1, 2\nX-B=3" == options("--header", "X-A=1, 2", "--header", "X-B=3").header
    assert "a=1" == options("--tag", "a=1").tag  # parsed again, as Locust's page does: nothing stays


def test_help_shows_a_percent_sign_as_one_on_the_command_line_and_in_the_page():
    parser = get_empty_argument_parser(default_config_files=[])
    add_options(parser)
    shown = {name: action.help for name, action in parser.args_included_in_web_ui.items()}

    assert "%%" not in parser.format_help()
    assert [] == [name for name, text in shown.items() if "%%" in text]
    assert all(text for text in shown.values())
