"""Requests to end a process: heard where Python runs, and where an engine never comes back."""

import signal
import subprocess
import sys
import time

import pytest

STUCK = """
import ctypes
from equipoise.ground.interrupts import ended_like_interrupt

mutex, lock = ctypes.create_string_buffer(128), ctypes.CDLL(None).pthread_mutex_lock
lock(mutex)
with ended_like_interrupt():
    while True:
        try:
            print("ready", flush=True)
            lock(mutex)  # waits for ever outside Python, as an engine that finds no memory for its threads
        except KeyboardInterrupt:
            pass
"""
WORKING = """
import time
from equipoise.ground.interrupts import ended_like_interrupt

try:
    with ended_like_interrupt():
        print("ready", flush=True)
        while True:
            time.sleep(0.01)
except KeyboardInterrupt:
    print("in order", flush=True)
    raise SystemExit(130)
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")


def _started(code: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_second_request_ends_a_process_whose_engine_never_comes_back() -> None:
    process, until = _started(STUCK), time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        process.terminate()
        time.sleep(0.3)
    code = process.poll()
    process.kill()
    process.communicate()
    assert code == -signal.SIGKILL


def test_two_requests_in_a_row_end_a_process_in_order() -> None:
    process = _started(WORKING)
    process.terminate()
    process.terminate()
    words, _ = process.communicate(timeout=60)
    assert (process.returncode, words) in ((130, "in order\n"), (-signal.SIGTERM, "in order\n"))
