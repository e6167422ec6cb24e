"""The package keeps its shape: layers, one door per effect, sizes.

Every rule is a function from the text of a module to what breaks it, so that each can be shown to fail.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "towpath"
MODULES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}

# From the ground up: a module imports only from its own layer or from those before it. The package's own
# __init__ stands outside: it is the door to everything and imports when it is called.
LAYERS = (
    "errors", "boundary", "checksums", "memory", "mapped", "locks", "rng", "files", "device", "plugins",
    "stats", "kernels", "data", "models",
    "ranking",
    "evaluation", "training", "transport", "baselines", "bandit", "methods", "tracking", "worlds",
    "diagnostics",
    "experiments", "reports", "serving", "abtest", "cli", "testing",
)  # fmt: skip
# Layers that stand side by side: neither imports the other, whichever comes first in the list above.
PEERS = {frozenset({"evaluation", "training"})}
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 50

# Who may do what; a folder ends in a slash. Everything else must ask one of them.
DOORS = {
    "prints": ("cli/",),
    "draws random numbers": ("rng.py",),
    "moves parameters": ("training/optimiser.py",),
    "looks at a clock": ("training/loop.py", "serving/clock.py"),
    # Spark and torchrun are other processes, which find their settings there.
    "asks the environment": ("cli/", "data/spark_session.py", "serving/together.py"),
    "replaces files": ("files.py", "data/fetch.py"),
    # A pool hands its workers what they need through a global of their own process.
    "keeps global state": ("experiments/pool.py",),
    "works when imported": ("cli/",),  # verbs are registered there
}

Breaches = list[str]


def layer_of(module: str) -> str:
    return module.split("/")[0].removesuffix(".py")


def may_import(layer: str, other: str) -> bool:
    return LAYERS.index(other) <= LAYERS.index(layer) and frozenset({layer, other}) not in PEERS


def imports_upwards(module: str, text: str) -> Breaches:
    own = layer_of(module)
    found = []
    for node in ast.walk(ast.parse(text)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relative to itself"
            base = node.module or ""
            names = [f"{base}.{a.name}" for a in node.names] if base == "towpath" else [base]
        for name in names:
            top, _, rest = name.partition(".")
            layer = rest.split(".")[0]
            # A name that is no layer is one of the package's own, such as __version__.
            if top == "towpath" and layer in LAYERS and not may_import(own, layer):
                found.append(f"{module}:{node.lineno} imports {name}")
    return found


def dotted(node: ast.AST) -> str:
    """The name that an expression spells, such as np.random.rand; parts that are no name are left out."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(text: str) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)


def imported(text: str) -> set[str]:
    """The modules that a text imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def prints(text: str) -> Breaches:
    talkers = {"print", "input", "typer.echo", "traceback.print_exc", "traceback.print_exception"}
    found = [f"{call.lineno} {name}" for call, name in calls(text) if name in talkers]
    streams = [node for node in ast.walk(ast.parse(text)) if dotted(node) in ("sys.stdout", "sys.stderr")]
    return found + [f"{node.lineno} {dotted(node)}" for node in streams if isinstance(node, ast.Attribute)]


# Functions of torch and methods of its tensors that draw from the global generator unless given another.
_TORCH_DRAWS = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson"}
_TENSOR_DRAWS = {"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "cauchy_", "trunc_normal_"}


def draws(text: str) -> Breaches:
    found = [f"0 import {name}" for name in imported(text) if name == "random" or name == "numpy.random"]
    for call, name in calls(text):
        *_, last = name.split(".")
        own = any(keyword.arg == "generator" for keyword in call.keywords)
        from_torch = name.startswith("torch.") and last.removesuffix("_like") in _TORCH_DRAWS
        hidden = name.startswith(("np.random.", "numpy.random.", "torch.nn.init.", "nn.init."))
        seeds = last in ("manual_seed", "default_rng", "seed_all")
        if hidden or seeds or ((from_torch or last in _TENSOR_DRAWS) and not own):
            found.append(f"{call.lineno} {name}")
    return found


def moves(text: str) -> Breaches:
    """Optimisers of torch, and gradients that land in parameters; autograd.grad only looks at them."""
    found = [f"0 import {name}" for name in imported(text) if name.startswith("torch.optim")]
    found += [f"{c.lineno} {name}" for c, name in calls(text) if name.endswith((".backward", ".zero_grad"))]
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    return found + [f"{node.lineno} torch.optim" for node in nodes if dotted(node) == "torch.optim"]


def tells_time(text: str) -> Breaches:
    found = [f"0 import {name}" for name in imported(text) if name.split(".")[0] in ("time", "timeit")]
    clocks = (".now", ".utcnow", ".today")
    return found + [f"{call.lineno} {name}" for call, name in calls(text) if name.endswith(clocks)]


def asks_environment(text: str) -> Breaches:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)]
    names = ("os.environ", "os.getenv", "os.putenv")
    return [f"{node.lineno} {dotted(node)}" for node in nodes if dotted(node) in names]


def replaces(text: str) -> Breaches:
    movers = {"os.replace", "os.rename", "shutil.move", "tempfile.mkstemp", "tempfile.mkdtemp"}
    writers = (".write_text", ".write_bytes")
    found = [(call, name) for call, name in calls(text) if name in movers or name.endswith(writers)]
    return [f"{call.lineno} {name}" for call, name in found]


def keeps_state(text: str) -> Breaches:
    return [f"{node.lineno} global" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Global)]


def works_when_imported(text: str) -> Breaches:
    """Statements of a module that do something rather than define something."""
    doing = (ast.For, ast.While, ast.With, ast.Try, ast.Delete, ast.AugAssign)
    nodes = ast.parse(text).body
    found = [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return [f"{node.lineno} statement" for node in [*found, *(n for n in nodes if isinstance(n, doing))]]


RULES: dict[str, Callable[[str], Breaches]] = {
    "prints": prints,
    "draws random numbers": draws,
    "moves parameters": moves,
    "looks at a clock": tells_time,
    "asks the environment": asks_environment,
    "replaces files": replaces,
    "keeps global state": keeps_state,
    "works when imported": works_when_imported,
}


def too_long(module: str, text: str) -> Breaches:
    lines = len(text.splitlines())
    found = [f"{module} has {lines} lines"] if lines > MOST_LINES else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            body = node.end_lineno - node.body[0].lineno + 1
            if body > MOST_LINES_OF_A_FUNCTION:
                found.append(f"{module}:{node.lineno} {node.name} has {body} lines")
    return found


def test_modules_import_from_below_only() -> None:
    inside = {module: text for module, text in MODULES.items() if module != "__init__.py"}
    assert len(inside) > 50
    assert [breach for module, text in inside.items() for breach in imports_upwards(module, text)] == []


@pytest.mark.parametrize("effect", DOORS)
def test_every_effect_has_its_doors(effect: str) -> None:
    outside = {module: text for module, text in MODULES.items() if not module.startswith(DOORS[effect])}
    found = [f"{module}:{breach}" for module, text in outside.items() for breach in RULES[effect](text)]
    assert found == [], f"only {' and '.join(DOORS[effect])} {effect}"


@pytest.mark.parametrize("effect", DOORS)
def test_no_door_is_left_open_for_nothing(effect: str) -> None:
    unused = [
        door
        for door in DOORS[effect]
        if not any(RULES[effect](text) for module, text in MODULES.items() if module.startswith(door))
    ]
    assert unused == []


def test_modules_and_functions_stay_small() -> None:
    assert [breach for module, text in MODULES.items() for breach in too_long(module, text)] == []


def test_no_module_is_a_bag() -> None:
    bags = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [module for module in MODULES if Path(module).stem in bags] == []


def test_every_kernel_has_a_row_in_the_benchmark() -> None:
    text = (ROOT.parents[1] / "benchmarks" / "kernels.py").read_text(encoding="utf-8")
    kernels = {Path(module).stem for module in MODULES if module.startswith("kernels/")}
    assert kernels - {"__init__", "available", "compiled", "jit"} - set(re.findall(r"\w+", text)) == set()


def test_every_module_says_what_it_is() -> None:
    silent = [m for m, text in MODULES.items() if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert silent == []


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        ("prints", "print('here')"),
        ("prints", "import sys\nsys.stdout.write('here')"),
        ("draws random numbers", "import numpy as np\nx = np.random.default_rng(0)"),
        ("draws random numbers", "import numpy as np\nx = np.random.rand(3)"),
        ("draws random numbers", "import random"),
        ("draws random numbers", "import torch\ntorch.manual_seed(0)"),
        ("draws random numbers", "import torch\nx = torch.rand(3)"),
        ("draws random numbers", "def f(t):\n    t.weight.normal_(0, 1)"),
        ("draws random numbers", "from torch import nn\ndef f(t):\n    nn.init.xavier_uniform_(t)"),
        ("moves parameters", "def f(loss):\n    loss.backward()"),
        ("moves parameters", "import torch\nx = torch.optim.Adam([])"),
        ("moves parameters", "from torch.optim import Adam"),
        ("looks at a clock", "import time"),
        ("looks at a clock", "from datetime import datetime\nx = datetime.now()"),
        ("asks the environment", "import os\nx = os.environ['HOME']"),
        ("replaces files", "import os\nos.replace('a', 'b')"),
        ("replaces files", "def f(path):\n    path.write_text('half')"),
        ("keeps global state", "def f():\n    global x\n    x = 1"),
        ("works when imported", "start()"),
        ("works when imported", "for x in range(3):\n    y = x"),
    ],
)
def test_each_rule_can_fail(effect: str, text: str) -> None:
    assert RULES[effect](text)


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        ("draws random numbers", "import torch\ndef f(g):\n    return torch.rand(3, generator=g)"),
        ("draws random numbers", "def f(rng: 'np.random.Generator'):\n    return rng.integers(3)"),
        ("moves parameters", "import torch\ndef f(x, y):\n    return torch.autograd.grad(x, y)"),
        ("looks at a clock", "from datetime import datetime\ndef f(t):\n    datetime.fromtimestamp(t)"),
        ("works when imported", '"""What it is."""\nX = 1\ndef f(): ...'),
    ],
)
def test_no_rule_forbids_what_is_fine(effect: str, text: str) -> None:
    assert RULES[effect](text) == []


def test_layers_and_sizes_can_fail() -> None:
    assert imports_upwards("data/a.py", "from towpath.models.scorer import Scorer")
    assert imports_upwards("data/a.py", "def f():\n    import towpath.cli.app")
    assert imports_upwards("errors.py", "from towpath import data")
    assert imports_upwards("training/a.py", "from towpath.evaluation.evaluate import Validator")
    assert imports_upwards("evaluation/a.py", "from towpath.training.fit import Fit")
    assert not imports_upwards("cli/a.py", "from towpath.data import split\nfrom towpath import __version__")
    assert too_long("a.py", "\n" * 401)
    assert too_long("a.py", "def f():\n" + "    x = 1\n" * 51)
