"""What is attacked, and how many of a thousand inputs each target gets; files take longest."""

from fuzz.commands import Commands
from fuzz.folders import Folders
from fuzz.logs import Logs
from fuzz.readers import Readers
from fuzz.requests import Requests
from fuzz.runs import Runs
from fuzz.settings import Settings
from fuzz.tables import Tables

TARGETS: dict[str, tuple[type, int]] = {
    "readers": (Readers, 100),
    "runs": (Runs, 20),
    "settings": (Settings, 300),
    "requests": (Requests, 510),
    "tables": (Tables, 30),
    "folders": (Folders, 25),
    "logs": (Logs, 12),
    "commands": (Commands, 3),
}
