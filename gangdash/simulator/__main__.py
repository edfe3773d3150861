"""`python -m gangdash.simulator`: serve the demo cluster on loopback until SIGTERM.

Prints one line of JSON with the address and the kubeconfig when it answers.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from gangdash.simulator.demo import Demo
from gangdash.simulator.store import utc_now


def main(arguments: list[str] | None = None) -> int:
    """Run until told to stop; return the exit code."""
    options = _parser().parse_args(arguments)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    demo = Demo(options.seed)
    try:
        api = demo.server(options.port)
    except OSError as error:
        print(f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}", file=sys.stderr)
        return 1
    with api:
        kubeconfig = ""
        if options.kubeconfig_out:
            try:
                kubeconfig = str(api.kubeconfig(options.kubeconfig_out, name="demo"))
            except OSError as error:
                print(f"cannot write {options.kubeconfig_out}: {error.strerror}", file=sys.stderr)
                return 1
        print(json.dumps({"url": api.url, "kubeconfig": kubeconfig}), flush=True)
        while not stopped.wait(options.step_seconds):
            demo.step(utc_now())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gangdash.simulator", description="Serve a small living demo cluster.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; any free one by default")
    parser.add_argument(
        "--kubeconfig-out", type=Path, help="file to write the kubeconfig to, readable by its owner only"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed plays the same piece")
    parser.add_argument("--step-seconds", type=_positive, default=5.0, help="seconds between two moves of the cluster")
    return parser


def _positive(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError("must be above zero")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
