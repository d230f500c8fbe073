"""Logs of the server: lines of text, or one JSON object per line, with the id of the request."""

from __future__ import annotations

import itertools
import json
import logging
import re
import secrets
import time
from contextvars import ContextVar
from typing import Literal

LogFormat = Literal["text", "json"]
REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request that is being served, also in threads that work for it."""
ACCEPTED = re.compile(rb"[A-Za-z0-9._-]{1,64}")
HEADER = b"x-request-id"
PROCESS = secrets.token_hex(4)
"""Start of the ids of this process."""
NUMBERS = itertools.count()


def request_id(headers: list[tuple[bytes, bytes]]) -> str:
    """Take the id of a request from its header ``X-Request-Id``, or make one.

    >>> request_id([(b"x-request-id", b"proxy-17")])
    'proxy-17'
    >>> len(request_id([(b"x-request-id", b"two words")]))
    16
    """
    for name, value in headers:
        if name == HEADER and ACCEPTED.fullmatch(value):
            return value.decode()
    return f"{PROCESS}{next(NUMBERS):08x}"


class JsonLines(logging.Formatter):
    """Format a log record as one JSON object.

    >>> record = logging.LogRecord("crowdtree.server.web", 30, "", 0, "two\\nlines", (), None)
    >>> record.created = 0.0
    >>> print(JsonLines().format(record))
    {"time": "1970-01-01T00:00:00.000Z", "level": "warning", "logger": "crowdtree.server.web", \
"message": "two\\nlines"}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write the record with the fields of a request, if there is one."""
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        made: dict[str, object] = {
            "time": f"{whole}.{int(record.created % 1 * 1000):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if found := REQUEST_ID.get():
            made["request_id"] = found
        made |= getattr(record, "request", {})
        if record.exc_info:
            made["exception"] = self.formatException(record.exc_info)
        return json.dumps(made)


def configure(access_log: bool, log_format: LogFormat) -> None:
    """Log warnings, and requests if wanted, to standard error."""
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(name)s %(message)s")
    handler.setFormatter(JsonLines() if log_format == "json" else text)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    if access_log:
        logging.getLogger("crowdtree.access").setLevel(logging.INFO)
