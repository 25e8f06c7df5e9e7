"""The `kschedx` command for shells, without the start of an interpreter and its imports: a script that passes its
arguments and streams to a server, which forks a process for each call and runs `kschedx.cli.main` there."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NoReturn

import kschedx
from kschedx.cli import main

_SCRIPT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode() + b"\\n")
    sys.exit(int(server.recv(16)))
"""


@contextmanager
def fork_server(folder: Path) -> Iterator[Path]:
    """Write the script into an empty folder, and yield its path."""
    script = folder / "kschedx"
    address = str(folder / "server")
    script.write_text(_SCRIPT.format(python=sys.executable, address=address))
    script.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        server = os.fork()
        if not server:
            _load()
            _serve(listener)
    try:
        yield script
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)


def _load() -> None:
    """Import the modules that every call would import again."""
    for module in walk_packages(kschedx.__path__, "kschedx."):
        with suppress(ImportError):  # of an extra that is not installed
            if module.name not in ("kschedx.__main__", "kschedx.pytest_plugin"):
                import_module(module.name)


def _serve(listener: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the calls
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _call(connection)
        connection.close()


def _call(connection: socket.socket) -> NoReturn:
    code = 1
    try:
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        with connection.makefile() as lines:
            arguments, folder, environment = json.loads(lines.readline())
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = arguments
        sys.stdin = os.fdopen(0)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        threading.current_thread().name = "MainThread"
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        connection.sendall(str(code).encode())
        os._exit(code)
