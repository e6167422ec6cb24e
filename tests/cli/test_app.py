"""The program as a whole: light to start, and every verb helps."""

import subprocess
import sys

import pytest
from typer import Context
from typer.main import get_command

import towpath as package
from towpath.cli.options import names_in, seeds_in
from towpath.cli.verbs import GROUPS, VERBS, app_with
from towpath.errors import ConfigError

# Not pydantic: recent versions of typer import it themselves.
HEAVY = {"torch", "numpy", "scipy", "duckdb", "pyarrow", "altair", "safetensors", "jinja2"}


STARTS = [
    "import towpath",
    "from towpath.cli import main; main(['--help'])",
    "from towpath.cli import main; main(['fit', '--help'])",
]


@pytest.mark.parametrize("start", STARTS)
def test_nothing_heavy_is_imported_before_a_verb_needs_it(start: str) -> None:
    code = f"import sys\n{start}\nprint('LOADED', *sorted(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(shown.stdout.rsplit("LOADED", 1)[1].split())
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    "verb",
    [["fit"], ["evaluate"], ["compare"], ["recommend"], ["similar"], ["demo"], ["data", "list"],
     ["data", "fetch"], ["data", "inspect"], ["tune"]],
)  # fmt: skip
def test_every_verb_has_help_and_json(verb: list[str], towpath) -> None:
    answer = towpath(*verb, "--help")
    assert answer.code == 0
    assert "--json" in answer.out
    assert "--quiet" in answer.out


@pytest.mark.parametrize("name", [*GROUPS, *VERBS])
def test_a_command_line_with_one_verb_says_of_it_what_the_whole_one_does(name: str) -> None:
    one, whole = (get_command(app_with(only)) for only in (name, None))
    assert list(one.commands) == [name]
    assert set(whole.commands) == {*GROUPS, *VERBS}
    helps = [command.commands[name].get_help(Context(command.commands[name])) for command in (one, whole)]
    assert helps[0] == helps[1]


def test_a_name_of_no_verb_meets_the_whole_command_line(towpath) -> None:
    assert "Did you mean 'recommend'?" in towpath("recomend", "run").sentence()


def test_all_models_and_methods_are_named_in_the_help(towpath) -> None:
    from towpath.methods.registry import METHODS
    from towpath.models.registry import MODELS

    shown = towpath("fit", "--help").out
    made_by_methods = {"headed"}
    assert [n for n in (*MODELS, *METHODS) if n not in shown and n not in made_by_methods] == []


def test_without_arguments_there_is_help(towpath) -> None:
    assert towpath().code == 0
    assert towpath("--version").out == f"towpath {package.__version__}\n"


def test_public_names_exist_and_unknown_ones_do_not() -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        package.fitt  # noqa: B018


@pytest.mark.parametrize("text", ["0", "", "x", "1,1", "-1", "1,-2", "1,"])
def test_seeds_that_cannot_be(text: str) -> None:
    with pytest.raises(ConfigError, match="--seeds takes"):
        seeds_in(text)


def test_names_must_differ() -> None:
    assert names_in(" mf, ease", "--models") == ["mf", "ease"]
    with pytest.raises(ConfigError, match="different names"):
        names_in("mf,mf", "--models")
