"""`overread serve`: the viewer of a run, on this machine."""

from __future__ import annotations

import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overread.core.errors import BadInput
from overread.core.inputs import regular
from overread_viewer.options import Options, is_address, is_loopback

if TYPE_CHECKING:
    from overread_viewer.catalogue import Catalogue
    from overread_viewer.readers.opening import ReaderStudy

SHORTEST_PASSWORD = 12
"""Letters: what is guessed at one try a second is not found by trying."""

app = typer.Typer(add_completion=False)


@app.command()
def serve_command(
    results: Annotated[Path, typer.Argument(help="the run's folder, results/<name>")],
    config: Annotated[
        Path | None, typer.Option("--config", help="the study's config file: its models can be asked ad-hoc questions")
    ] = None,
    study: Annotated[Path | None, typer.Option("--study", help="the file of a reader study, readers.yaml")] = None,
    host: Annotated[
        str, typer.Option(help="the address to listen on; any address other than loopback requires a password")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(help="0 takes a free one", min=0, max=65535)] = 8008,
    password_file: Annotated[
        Path | None, typer.Option("--password-file", help="a file whose first line is the password to be asked")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="address of a TLS proxy whose X-Forwarded-For and -Proto are believed; may be repeated"),
    ] = None,
) -> None:
    """Open a run as web pages: studies, answers, comparisons, the reader study."""
    for each in proxy or ():
        if not is_address(each):
            raise BadInput(
                f"--proxy {each}: not an address; give the one that the proxy connects from, as in 127.0.0.1"
            )
    password = read_password(password_file) if password_file is not None else None
    serve(Options(results, config, study, host, port, password, tuple(proxy or ())))


def serve(options: Options) -> None:
    """Serve a run until Ctrl-C.

    raises  BadInput for a folder that is no finished run, a port that is taken, another host without a password, or
            an environment without the viewer's packages
    """
    if not options.loopback and options.password is None:
        raise BadInput(
            f"--host {options.host}: other machines could open reports and images there; give --password-file with a "
            "file that holds a password, or leave --host away and come through an SSH tunnel (docs/viewer.md)"
        )
    try:
        import fastapi  # noqa: F401
        import itsdangerous  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn
    except ModuleNotFoundError as error:
        raise BadInput(f"the viewer needs {error.name}, which is not installed: pip install -e .[web]") from None
    from overread_viewer.app import create_app
    from overread_viewer.unfinished import Unfinished

    app = create_app(options)
    listening = _listen(options.host, options.port)
    if not options.loopback:
        if options.readers is None:
            lines = exposure(app.state.catalogue, options.host)
        else:
            lines = study_exposure(app.state.reader_study, options.host)
        for line in lines:
            typer.echo(line)
    host = options.host if ":" not in options.host else f"[{options.host}]"
    if isinstance(app.state.catalogue, Unfinished):
        typer.echo(f"{app.state.catalogue.why}; until then its generated questions can be reviewed")
    typer.echo(f"{options.results} is at http://{host}:{listening.getsockname()[1]}/ (Ctrl-C ends it)")
    if options.readers is not None:
        from overread_viewer.readers_commands import announced

        for line in announced(app.state.reader_study, f"http://{host}:{listening.getsockname()[1]}"):
            typer.echo(line)
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, ws="none",
            http="h11", timeout_graceful_shutdown=3, lifespan="on",
        )
    )  # fmt: skip
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        listening.close()
    typer.echo("ended")


def _where(host: str) -> str:
    return "on every network that this machine is on" if host in ("0.0.0.0", "::", "") else f"at {host}"


def study_exposure(study: ReaderStudy, host: str) -> list[str]:
    """What others see of a reader study who reach `host`, know the password and hold a link."""
    restricted = "RESTRICTED data" if study.restricted else "not restricted"
    return [
        f"Whoever reaches this server {_where(host)}, knows the password and has a rater's link sees, not encrypted:",
        f"  {study.dataset} ({restricted}): the images of that rater's questions; an answer once theirs is stored",
        "  with the organiser's link: every rater's link, progress and ratings",
    ]


def exposure(catalogue: Catalogue, host: str) -> list[str]:
    """What others see who reach `host` and know the password."""
    lines = [f"Whoever reaches this server {_where(host)} and knows the password sees, without encryption:"]
    for dataset in catalogue.datasets:
        studies = catalogue.studies(dataset)
        restricted = "RESTRICTED data" if catalogue.restricted(dataset) else "not restricted"
        reports = sum(bool(study.report) for study in studies.values())
        lines.append(
            f"  {dataset} ({restricted}): images of {len(studies)} studies, {reports} reports, "
            f"{len(catalogue.questions(dataset))} questions, every answer"
        )
    return [*lines, "  the tables and the report"]


def read_password(path: Path) -> str:
    """The first line of a file that only its owner can read.

    raises  BadInput for a file that is missing, too open, or holds too short a password
    """
    try:
        mode = path.stat().st_mode
        lines = regular(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--password-file {path}: can't be read: {error}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadInput(f"--password-file {path}: others can read it; run chmod 600 {path}")
    password = lines[0].strip() if lines else ""
    if len(password) < SHORTEST_PASSWORD:
        raise BadInput(
            f"--password-file {path}: its first line must be a password of {SHORTEST_PASSWORD} letters or more"
        )
    return password


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket, so that the address is known, and what is wrong with it said, before anything is served."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise BadInput(f"--host {host}: no address of this machine: {error}") from None
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if is_loopback(host) and not is_loopback(str(address[0])):
            raise BadInput(f"--host {host}: this machine resolves it to {address[0]}, which is not loopback")
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise BadInput(f"{host}:{port}: can't listen there: {error.strerror}; give another with --port") from None
    except BadInput:
        listening.close()
        raise
    return listening
