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
    "readers": (Readers, 70),
    "runs": (Runs, 12),
    "settings": (Settings, 300),
    "requests": (Requests, 576),
    "tables": (Tables, 20),
    "folders": (Folders, 10),
    "logs": (Logs, 10),
    "commands": (Commands, 2),
}
