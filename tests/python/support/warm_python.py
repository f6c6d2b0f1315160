"""An interpreter that has already imported torch. Each run starts as a fork of one process, so it saves the seconds of the import,
which are most of a small test. It ends without finalising the interpreter, which would copy all of the forked memory. A run sees the
same state as after its own import. Tests of the import, of processes, signals, the environment or the end of a process use the real
interpreter.

    python warm_python.py serve SOCKET           imports torch, prints "ready", forks for each run until its standard input ends
    python warm_python.py run SOCKET script …    as `python script …`, in a fork: its streams, folder, environment and exit code
"""

import atexit
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
from types import ModuleType

_SIZE = struct.Struct("<q")


# -- the run -----------------------------------------------------------------------------------------------------


def run(path, arguments):
    """Does not return: this process ends as the fork does."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        request = json.dumps({"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
        socket.send_fds(server, [_SIZE.pack(len(request))], [0, 1, 2])
        server.sendall(request)
        code = os.waitstatus_to_exitcode(_SIZE.unpack(_read(server, _SIZE.size))[0])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _read(connection, size):
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError("the other side is gone")
        found += part
    return found


# -- the server -------------------------------------------------------------------------------------------------------


def serve(path):
    """Returns only in a fork: the request and its streams."""
    import torch.distributed.fsdp  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while True:
            if sys.stdin.fileno() in select.select([listening, sys.stdin.fileno()], [], [])[0]:
                os._exit(0)
            connection, _ = listening.accept()
            if os.fork():
                connection.close()
                continue
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _keep(connection)


def _keep(connection):
    """Forks, and sends the exit status of the fork. Kills the fork if the other side closes the connection."""
    size, streams, _, _ = socket.recv_fds(connection, _SIZE.size, 3)
    request = json.loads(_read(connection, _SIZE.unpack(size)[0]))
    copy = os.fork()
    if not copy:
        connection.close()
        return request, streams
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    ended = os.pidfd_open(copy)
    if connection in select.select([ended, connection], [], [])[0]:
        os.kill(copy, signal.SIGKILL)
    _, status = os.waitpid(copy, 0)
    try:
        connection.sendall(_SIZE.pack(status))
    finally:
        os._exit(0)


def become(request, streams):
    """The module and the code of `python script …`."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
    script = sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    main = ModuleType("__main__")
    main.__file__ = script
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    with open(script, encoding="utf-8") as file:
        return main, compile(file.read(), script, "exec")


# -- the end of a fork -------------------------------------------------------------------------------------------------------


def exit_code(end):
    """The exit code that Python gives to a SystemExit."""
    if end.code is None or isinstance(end.code, int):
        return (end.code or 0) & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def leave(code):
    """Ends this process as Python does, but does not finalise the interpreter."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    warm_main, warm_code = become(*serve(sys.argv[2]))
    warm_exit = 0
    try:
        exec(warm_code, warm_main.__dict__)
    except SystemExit as warm_end:
        warm_exit = exit_code(warm_end)
    except KeyboardInterrupt:
        raise
    except BaseException:
        sys.excepthook(*sys.exc_info())
        warm_exit = 1
    leave(warm_exit)
