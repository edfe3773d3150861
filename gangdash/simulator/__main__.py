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

from gangdash.simulator.demo import NOT_INSTALLED, Demo
from gangdash.simulator.server import FakeApiServer
from gangdash.simulator.store import utc_now


def main(arguments: list[str] | None = None) -> int:
    """Run until told to stop; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        api = FakeApiServer(port=options.port)
    except OSError as error:
        print(f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}", file=sys.stderr)
        return 1
    for kind in NOT_INSTALLED:
        api.faults.unserve(kind)
    demo = Demo(api.store, options.seed)
    with api:
        try:
            kubeconfig = str(api.kubeconfig(options.kubeconfig_out, name="demo")) if options.kubeconfig_out else ""
        except OSError as error:
            print(f"cannot write {options.kubeconfig_out}: {error.strerror}", file=sys.stderr)
            return 1
        return _play(demo, options.step_seconds, json.dumps({"url": api.url, "kubeconfig": kubeconfig}))


def _play(demo: Demo, seconds: float, ready: str) -> int:
    """Say that it is ready and let the cluster live until a signal, or a fault of its own, ends it."""
    stopped, failed = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())

    def live() -> None:
        try:
            while not stopped.wait(seconds):
                demo.step(utc_now())
        finally:
            if not stopped.is_set():
                failed.set()
                stopped.set()

    # A thread of its own, so that a signal need not wait for the step under way.
    threading.Thread(target=live, name="demo", daemon=True).start()
    print(ready, flush=True)
    stopped.wait()
    return int(failed.is_set())


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
