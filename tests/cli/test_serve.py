import socket

import pytest

from served import save_model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model") / "mf")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "give a --token-file"),
        (["--weights", "1,2"], "--weights takes a number for each of the 1 arms"),
        (["--weights", "x"], "--weights takes a number"),
        (["--holdout", "1"], "--holdout is a share"),
        (["--epsilon", "2"], "--epsilon must lie"),
        (["--arm", "b"], "--arm takes NAME=RUN"),
        (["--rest"], "does not know when users were shown what"),
        (["--arm", "a=again"], "different names"),
        (["--token-file", "none"], "token file none cannot be read"),
    ],
)
def test_what_cannot_be_is_said(towpath, model, tmp_path, options, said):
    found = towpath(
        "serve", "--arm", f"a={model}", "--log", tmp_path / "log", "--port", 0, "--quiet", *options
    )
    assert said in found.sentence()


def test_a_missing_model_a_bad_log_and_a_taken_port_are_said(towpath, model, tmp_path):
    place = ("--log", tmp_path / "log", "--port", 0, "--quiet")
    assert "no saved artifact" in towpath("serve", "--arm", f"a={tmp_path}", *place).sentence()
    (tmp_path / "file").write_text("")
    log = ("--log", tmp_path / "file" / "log", "--port", 0, "--quiet")
    assert "cannot be opened" in towpath("serve", "--arm", f"a={model}", *log).sentence()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = ("--log", tmp_path / "log", "--port", taken.getsockname()[1])
        assert "choose another --port" in towpath("serve", "--arm", f"a={model}", *busy).sentence()


def test_a_missing_extra_is_one_sentence(towpath, model, tmp_path, monkeypatch):
    monkeypatch.setattr("towpath.cli.serve.find_spec", lambda name: None if name == "msgspec" else object())
    found = towpath("serve", "--arm", f"a={model}", "--log", tmp_path / "log")
    assert found.sentence() == "Serving needs msgspec, which is not installed: pip install 'towpath[serve]'."
    world = towpath("simulate", "serve", tmp_path, "--days", 1)
    assert world.sentence() == found.sentence()
