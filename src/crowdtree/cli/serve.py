"""The verb `serve`: live campaigns for workers, and their pages for the owner."""

from __future__ import annotations

import json
import webbrowser
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from crowdtree.cli.campaign.database import (
    HERE,
    PORT,
    Database,
    MediaPlace,
    base_url,
    import_server,
    media_place,
    opened,
    without_password,
)
from crowdtree.cli.options import AsJson, flag, from_environment, option, with_options


@dataclass(frozen=True)
class Address:
    """Address options."""

    host: Annotated[str, option("Address to listen on; 0.0.0.0 for other machines too.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, option("Port to listen on; 0 for any free port.")] = PORT
    url: Annotated[str, option("Public address, such as https://label.example.", "URL")] = ""
    https: Annotated[bool, flag("--https", "Served over https: send cookies over https only.")] = (
        False
    )
    trusted_host: Annotated[
        list[str] | None, option("Host name of the server; may be repeated.")
    ] = None


@dataclass(frozen=True)
class Running:
    """Limits and processes."""

    processes: Annotated[
        int, option("Server processes (more than 1 require PostgreSQL).", min=1)
    ] = 1
    media: MediaPlace = None
    no_media: Annotated[bool, flag("--no-media", "Refuse uploaded media.")] = False
    private_webhooks: Annotated[
        bool, flag("--private-webhooks", "Allow webhooks to private addresses.")
    ] = False
    joins_per_minute: Annotated[
        int, option("Joins through open links, per minute and address.", min=1)
    ] = 600
    access_log: Annotated[bool, flag("--access-log", "Log every request.")] = False
    log_format: Annotated[Literal["text", "json"], option("Format of the log.")] = "text"


@from_environment
@with_options
def serve_verb(
    *,
    database: Database = HERE,
    address: Address,
    open_page: Annotated[bool, flag("--open", "Open the owner's page in the browser.")] = False,
    running: Running,
    example: Annotated[
        bool, flag("--example", "Create an example campaign if there are none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve live campaigns: questions to workers, results to you.

    Prints a link that logs you in once; earlier links that were not used end (crowdtree owner link
    prints more). Everything is kept in one file in the current folder. Every option can also be set
    by an environment variable.

    Examples:

      crowdtree serve --open

      crowdtree serve --host 0.0.0.0 --url https://label.example --https

      crowdtree serve --example

      crowdtree serve --database postgresql://user@host/name --processes 4
    """
    serve = import_server("crowdtree.server.web.serve")
    serving = _serving(serve, database, address, running)
    if example:
        load_example = import_server("crowdtree.cli.rehearsal.example").load_example
        with opened(database, new=True) as store:
            load_example(store)
    serve.run(serving, partial(_welcome, without_password(database), open_page, as_json))
    if not as_json:
        print(f"\nStopped. Campaigns are kept in {without_password(database)}.", flush=True)


def _serving(serve: Any, database: str, address: Address, running: Running) -> Any:
    place = media_place(database, running.media)
    return serve.Serving(
        database=database,
        host=address.host,
        port=address.port,
        processes=running.processes,
        media=None if running.no_media else place,
        key_file=serve.beside(database, ".key"),
        secure_cookies=address.https,
        private_webhooks=running.private_webhooks,
        trusted_hosts=tuple(address.trusted_host or ()),
        access_log=running.access_log,
        log_format=running.log_format,
        joins_per_minute=running.joins_per_minute,
        url=base_url(address.url),
    )


def _welcome(database: str, open_page: bool, as_json: bool, link: str) -> None:
    """Print the address and how to stop the server."""
    if as_json:
        url = link.partition("/login")[0]
        print(json.dumps({"database": database, "url": url, "link": link}), flush=True)
    else:
        print(f"crowdtree serves {database}", flush=True)
        print(f"Open this link to log in (it works once):\n\n    {link}\n", flush=True)
        print("Stop with Ctrl-C. Campaigns are kept.", flush=True)
    if open_page:
        webbrowser.open(link)
