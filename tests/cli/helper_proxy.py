"""Stands between Tessera and a real helper, and spoils one message: see test_helper_protocol.py.

Usage: helper_proxy.py REAL FOLDER ARGUMENT...: REAL is the helper's program, which gets the arguments. FOLDER holds
`plan`, a number and a name of SPOILS, and `log`, to which each message of the helper adds a line: what it is an answer
to, and, of the spoilt one, "spoilt".
"""

import os
import signal
import socket
import struct
import sys

HEAD = struct.Struct("7Q")
HELLO, REQUEST, ANSWER, ERROR, READ = range(5)


def exactly(channel, size):
    data = b""
    while len(data) < size:
        more = channel.recv(size - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


def die(parent, head, body):
    os._exit(3)


def be_killed(parent, head, body):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_the_parent(parent, head, body):
    os.kill(os.getppid(), signal.SIGKILL)
    parent.recv(1)
    os._exit(0)


def half_a_head(parent, head, body):
    parent.sendall(HEAD.pack(*head)[:20])
    os._exit(0)


def half_a_body(parent, head, body):
    parent.sendall((HEAD.pack(*head) + body)[:HEAD.size - 1 + (len(body) + 1) // 2])
    os._exit(0)


def hang(parent, head, body):
    parent.recv(1)
    os._exit(0)


def with_head(**changed):
    """Says another head, and then nothing more."""

    def spoil(parent, head, body):
        head = list(head)
        for name, value in changed.items():
            head[("kind", "size", "place").index(name)] = value
        parent.sendall(HEAD.pack(*head) + body)
        if "size" not in changed or changed.get("kind") == READ:
            parent.recv(1)  # until it hangs up
        os._exit(0)
    return spoil


def as_an_error(parent, head, body):
    parent.sendall(HEAD.pack(ERROR, len(body), *head[2:]) + body)


def with_body(change):
    """Says another body, of its own size, and goes on."""

    def spoil(parent, head, body):
        if head[0] != READ:
            body = change(body)
        parent.sendall(HEAD.pack(head[0], head[1] if head[0] == READ else len(body), *head[2:]) + body)
    return spoil


SPOILS = {
    "die": die, "be_killed": be_killed, "kill_the_parent": kill_the_parent, "half_a_head": half_a_head,
    "half_a_body": half_a_body, "hang": hang, "endless": with_head(size=1 << 62), "no_kind": with_head(kind=9),
    "request": with_head(kind=REQUEST), "hello": with_head(kind=HELLO),
    "read_beyond": with_head(kind=READ, size=1 << 20, place=1 << 40),
    "read_too_much": with_head(kind=READ, size=1 << 60, place=0), "error": as_an_error,
    "short": with_body(lambda body: body[:-1]), "empty": with_body(lambda body: b""),
    "ones": with_body(lambda body: b"\xff" * len(body)), "zeros": with_body(lambda body: bytes(len(body))),
    "text": with_body(lambda body: b"garbage " * (len(body) // 8 + 1)),
}


def main():
    real, folder, *arguments = sys.argv[1:]
    parent = socket.socket(fileno=3)
    near, far = socket.socketpair()
    # Below 3 and 4 lie the parent's own; the helper gets its socket as 3.
    os.set_inheritable(4, True)
    os.posix_spawn(real, ["tessera-helper", *arguments], os.environ,
                   file_actions=[(os.POSIX_SPAWN_DUP2, far.fileno(), 3)])
    far.close()
    wanted, how = open(folder + "/plan").read().split()
    task = -1
    while True:
        head = HEAD.unpack(exactly(near, HEAD.size))
        body = b"" if head[0] == READ else exactly(near, head[1])
        log = open(folder + "/log", "a+")
        log.seek(0)
        wanted, how = open(folder + "/plan").read().split()
        spoilt = len(log.readlines()) == int(wanted)
        log.write(f"{task} {'read' if head[0] == READ else 'answer'}{' spoilt' if spoilt else ''}\n")
        log.close()
        if spoilt:
            SPOILS[how](parent, head, body)
        else:
            parent.sendall(HEAD.pack(*head) + body)
        if head[0] == READ:
            near.sendall(exactly(parent, head[1]))
            continue
        asked = exactly(parent, HEAD.size)
        task = HEAD.unpack(asked)[2]
        near.sendall(asked + exactly(parent, HEAD.unpack(asked)[1]))


if __name__ == "__main__":
    main()
