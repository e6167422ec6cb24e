"""All benchmarks that need no data of their own, one after another: `make bench`."""

import subprocess
import sys

NAMES = ("ingest", "sampling", "ranking", "expomf", "startup")

if __name__ == "__main__":
    codes = []
    for name in NAMES:
        print(f"== {name}", flush=True)
        codes.append(subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode)
    sys.exit(max(codes))
