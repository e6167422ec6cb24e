"""The port, and what the parent of several workers tells each of them; nothing heavy is imported here."""

import json
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from towpath.errors import ConfigError
from towpath.serving.http.settings import Place, ServerSettings, Tls

BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"Cannot listen on {host} port {port}: {why}; choose another --port.") from error
    listening.listen(BACKLOG)
    return listening


@dataclass(frozen=True)
class Task:
    """What the parent tells a worker on its standard input; the end of it means that the parent is gone."""

    settings: ServerSettings
    descriptor: int  # of the listening socket
    place: Place
    tls: Tls = field(default_factory=Tls)

    def to_json(self) -> str:
        """One line."""
        place = {"worker": self.place.worker, "folder": str(self.place.folder), "seed": self.place.seed}
        parts = {"settings": self.settings.to_json(), "descriptor": self.descriptor, "place": place}
        return json.dumps({**parts, "tls": vars(self.tls)}) + "\n"

    @staticmethod
    def from_json(line: str) -> "Task":
        """What `to_json` gave."""
        stored: dict[str, Any] = json.loads(line)
        place = {**stored["place"], "folder": Path(stored["place"]["folder"])}
        settings = ServerSettings.from_json(stored["settings"])
        return Task(settings, stored["descriptor"], Place(**place), Tls(**stored["tls"]))
