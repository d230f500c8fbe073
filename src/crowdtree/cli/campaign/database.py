"""Code shared by the campaign verbs: the database and its optional dependencies."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from crowdtree.cli.options import argument, option
from crowdtree.core.errors import CrowdtreeError, needing

if TYPE_CHECKING:
    from crowdtree.server.store import Store

MAX_NUMBER = 2**53
Number = Annotated[
    int, argument("CAMPAIGN", "The campaign's number.", max=MAX_NUMBER, show_default=True)
]


def _check_kept(database: str) -> str:
    """Refuse a folder, and a database in memory, which ends with the command."""
    file = re.sub(r"^sqlite:/{2,3}", "", database)
    if file in ("", ":memory:") or Path(file).is_dir():
        raise CrowdtreeError(f"--database: expected a file or an address, got {database!r}")
    return database


Database = Annotated[
    str,
    option(
        "A file, sqlite:///FILE or postgresql://...",
        "URL",
        "--database",
        envvar="CROWDTREE_DATABASE",
        callback=_check_kept,
    ),
]
MediaPlace = Annotated[
    str | None,
    option(
        "Folder for uploaded images, audio and video, or s3://BUCKET/PREFIX.",
        "DIR",
        "--media",
        envvar="CROWDTREE_MEDIA",
        show_default="next to the database",
    ),
]
HERE = "crowdtree.db"
PORT = 8321
HERE_URL = f"http://127.0.0.1:{PORT}"
Url = Annotated[
    str, option("Address of the server, as --url of serve.", "URL", "--url", envvar="CROWDTREE_URL")
]


def base_url(url: str) -> str:
    """Check the public address, and remove the slash at its end.

    >>> base_url("https://label.example/")
    'https://label.example'
    """
    parts = urlsplit(url)
    plain = parts.scheme in ("http", "https") and parts.hostname and parts.path in ("", "/")
    if url and not (plain and not parts.query and "@" not in parts.netloc):
        raise CrowdtreeError(f"--url: expected https://NAME without a path, got {url}")
    return url.rstrip("/")


def without_password(database: str) -> str:
    """Write a database's address without its password.

    >>> without_password("postgresql://ann:secret@host/birds"), without_password("birds.db")
    ('postgresql://ann:***@host/birds', 'birds.db')
    >>> without_password("postgresql://host/birds?user=ann&password=secret")
    'postgresql://host/birds?user=ann&password=***'
    """
    hidden = re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", database)
    return re.sub(r"([?&]password=)[^&]*", r"\1***", hidden)


def next_step(database: str, *words: object) -> str:
    """Write the next command, for the same database.

    >>> next_step("birds.db", "campaign", "start", 1), next_step(HERE, "serve")
    ('crowdtree campaign start 1 --database birds.db', 'crowdtree serve')
    """
    option = [] if database == HERE else ["--database", without_password(database)]
    return shlex.join(["crowdtree", *map(str, words), *option])


def check_exists(database: str) -> None:
    """Raise where the file of an SQLite database is missing."""
    file = database.removeprefix("sqlite:///")
    if "://" not in file and not Path(file).exists():
        raise CrowdtreeError(
            f"database: there is no file {file}; create a campaign with crowdtree campaign create, "
            "or check --database"
        )


@contextmanager
def one_line() -> Iterator[None]:
    """Turn errors of the database into one line."""
    import sqlite3

    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        raise CrowdtreeError(f"database: {reason}; check --database") from None


@contextmanager
def opened(database: str, new: bool = False) -> Iterator[Store]:
    """Open a database, created only if `new` is set; errors take one line."""
    from crowdtree.server.store import Store
    from crowdtree.server.store.db.activity import COMMAND_LINE, acting

    if not new:
        check_exists(database)
    with one_line(), Store(database).opened() as store, acting(COMMAND_LINE):
        yield store


def import_server(name: str) -> Any:
    """Import a module of the server, or raise an error that says what to install."""
    with needing("the server", "serve"):
        return importlib.import_module(name)


def media_place(database: str, media: str | None) -> str:
    """Where uploaded media are: what was given, or the folder next to the database."""
    return media or str(import_server("crowdtree.server.web.serve").beside(database, "-media"))


def opened_media(database: str, media: str | None) -> Any:
    """The uploaded media of all campaigns."""
    files = import_server("crowdtree.server.media")
    return files.open_media(media_place(database, media))
