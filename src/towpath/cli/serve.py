"""towpath serve: answers over HTTP, several arms, every exposure logged."""

import os
import signal
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Annotated

import typer

from towpath.cli.output import Output
from towpath.cli.prepare import use_threads
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.serving.http.settings import ArmSettings, ServerSettings

_LIMITS, _ACCESS, _EXPLORATION, _REST = "Limits", "Access", "Exploration", "Rest"
_WORKER = ("-c", "from towpath.cli.serve import work; work()")


@dataclass(frozen=True)
class ServeOptions:
    """What is served, to whom, and where it is logged."""

    arm: Annotated[
        list[str],
        typer.Option(metavar="NAME=RUN", help="An arm and its run; repeat. The first is the control."),
    ]
    log: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where exposures are logged: a folder or postgresql://…")
    ]
    weights: Annotated[
        str | None, typer.Option(help="A weight for each arm, with commas; by default all are equal.")
    ] = None
    holdout: Annotated[
        float, typer.Option(help="Share of the users who keep the first arm's model, as an arm of their own.")
    ] = 0.0
    salt: Annotated[str, typer.Option(help="Another salt assigns all users to the arms anew.")] = "towpath"
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8080
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the port.")] = 1
    epsilon: Annotated[
        float,
        typer.Option(help="Chance that a slot gets any item at all.", rich_help_panel=_EXPLORATION),
    ] = 0.0
    softmax: Annotated[
        float,
        typer.Option(help="Temperature above 0: slots are drawn by score.", rich_help_panel=_EXPLORATION),
    ] = 0.0
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seed of exploration; by default another one at each start.",
            rich_help_panel=_EXPLORATION,
        ),
    ] = None
    filter_shown: Annotated[
        bool,
        typer.Option(
            "--filter-shown", help="Leave out everything that the user was shown.", rich_help_panel=_REST
        ),
    ] = False
    max_showings: Annotated[
        int | None,
        typer.Option(
            min=1, help="Leave out what the user was shown so often or more.", rich_help_panel=_REST
        ),
    ] = None
    rest: Annotated[
        bool,
        typer.Option(
            "--rest",
            help="Discount what was shown lately, by the time since, as repeats in the run's log say.",
            rich_help_panel=_REST,
        ),
    ] = False
    token_file: Annotated[
        str | None,
        typer.Option(
            help="A token on each line; needed unless only loopback is listened on.", rich_help_panel=_ACCESS
        ),
    ] = None
    admin_token_file: Annotated[
        str | None, typer.Option(help="Tokens for /admin.", rich_help_panel=_ACCESS)
    ] = None
    tls_certificate: Annotated[
        str | None, typer.Option(help="Certificate, to speak TLS without a proxy.", rich_help_panel=_ACCESS)
    ] = None
    tls_key: Annotated[str | None, typer.Option(help="Its key.", rich_help_panel=_ACCESS)] = None
    max_k: Annotated[int, typer.Option(min=1, help="Longest list.", rich_help_panel=_LIMITS)] = 100
    max_body: Annotated[
        int, typer.Option(min=100, help="Bytes of the largest body.", rich_help_panel=_LIMITS)
    ] = 1_000_000
    rate: Annotated[
        float,
        typer.Option(
            min=0, help="Requests a second of one client and worker; 0: no limit.", rich_help_panel=_LIMITS
        ),
    ] = 0.0
    retain_days: Annotated[
        float, typer.Option(min=0, help="Delete older rows of the log; 0: keep all.", rich_help_panel=_LIMITS)
    ] = 0.0
    max_log_mb: Annotated[
        int, typer.Option(min=0, help="Megabytes of a worker's log; 0: no limit.", rich_help_panel=_LIMITS)
    ] = 0


def serve(options: ServeOptions, output: Output) -> None:
    """Serve the models of several arms over HTTP; every answer is logged before it is sent."""
    refuse_without_server()
    use_threads(1)
    settings = _settings(options)
    from towpath.serving.http.listening import listen
    from towpath.serving.http.settings import Place, Tls

    seed = int.from_bytes(os.urandom(6), "big") if options.seed is None else options.seed
    tls = Tls(options.tls_certificate, options.tls_key)
    if current_thread() is main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the server stops in its own way, and says nothing
    with listen(options.host, options.port) as listening:
        address = f"{'https' if tls.certificate else 'http'}://{options.host}:{listening.getsockname()[1]}"
        output.say(f"Serving {', '.join(arm.name for arm in settings.arms)} on {address}")
        if settings.workers == 1:
            from towpath.serving.http.server import run_worker

            run_worker(settings, listening, Place(seed=seed), tls)
        else:
            from towpath.serving.http.supervisor import supervise

            supervise(settings, listening, seed, tls, _WORKER)


def refuse_without_server() -> None:
    """Nothing, unless the extra `serve` is missing."""
    if missing := [name for name in ("starlette", "uvicorn", "msgspec") if find_spec(name) is None]:
        raise ConfigError(
            f"Serving needs {missing[0]}, which is not installed: pip install 'towpath[serve]'."
        )


def work() -> None:
    """One of several workers; its parent writes the task to its standard input."""
    from towpath.cli.app import report_errors

    use_threads(1)
    from towpath.serving.http.server import work_for_parent

    code = report_errors(lambda: work_for_parent(0))  # standard input
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)  # a thread still waits for the parent to end, and all else is closed


def _settings(options: ServeOptions) -> "ServerSettings":
    from towpath.serving.exposure_log.store import LogSettings
    from towpath.serving.http.settings import (
        LOOPBACK,
        Access,
        Exploration,
        Limits,
        RestRules,
        ServerSettings,
    )

    if options.host not in LOOPBACK and options.token_file is None:
        raise ConfigError(
            f"Whoever can reach {options.host} could ask this server; give a --token-file, or listen on "
            "127.0.0.1."
        )
    return ServerSettings(
        arms=tuple(_arms(options)),
        log=LogSettings(options.log, options.max_log_mb),
        salt=options.salt,
        holdout=options.holdout,
        exploration=Exploration(options.epsilon, options.softmax),
        rest=RestRules(options.filter_shown, options.max_showings, options.rest),
        limits=Limits(most_k=options.max_k, most_bytes=options.max_body, per_second=options.rate),
        access=Access(options.token_file, options.admin_token_file),
        retain_days=options.retain_days,
        workers=options.workers,
    )


def _arms(options: ServeOptions) -> "list[ArmSettings]":
    from towpath.serving.http.settings import ArmSettings

    pairs = [arm.partition("=") for arm in options.arm]
    wrong = next(
        (arm for arm, (name, _, run) in zip(options.arm, pairs, strict=True) if not (name and run)), None
    )
    if wrong is not None:
        raise ConfigError(f"--arm takes NAME=RUN, such as --arm control=runs/mf, and {wrong!r} was given.")
    weights = [1.0] * len(pairs)
    if options.weights is not None:
        try:
            weights = [float(weight) for weight in options.weights.split(",")]
        except ValueError:
            weights = []
        if len(weights) != len(pairs):
            raise ConfigError(
                f"--weights takes a number for each of the {len(pairs)} arms, with commas, and "
                f"{options.weights!r} was given."
            )
    return [ArmSettings(name, run, weight) for (name, _, run), weight in zip(pairs, weights, strict=True)]
