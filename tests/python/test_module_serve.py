#!/usr/bin/env python3
"""tessera.serve: the server as an object of a process."""
import gc
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import module
import numpy as np
from module import golden, raises, tessera

try:
    tessera.serve(golden).close()
except tessera.Unsupported as error:
    print("skipped:", error)
    sys.exit(77)


def get(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read()


def test_the_object():
    np.save("a.npy", np.arange(3))
    server = tessera.serve("a.npy")
    assert str(server) == server.url == f"http://127.0.0.1:{server.port}{server.url[len(f'http://127.0.0.1:{server.port}'):]}"
    assert not server.closed and server.url in repr(server)
    assert get(server.url + "v2/0") == np.arange(3).tobytes()
    with raises(tessera.IoError, str(server.port)):
        tessera.serve("a.npy", port=server.port)
    server.close()
    server.close()
    assert server.closed and "closed" in repr(server)
    with raises(urllib.error.URLError):
        get(server.url)
    with tessera.serve("a.npy", token=False, port=server.port) as again:
        assert again.url == f"http://127.0.0.1:{server.port}/" and get(again.url + "v2/0")
    forgotten = tessera.serve("a.npy").url
    gc.collect()
    with raises(urllib.error.URLError):
        get(forgotten)
    np.savez("two.npz", x=np.arange(3), y=np.arange(4))
    with tessera.serve("a.npy", tessera.open("two.npz")) as both:
        assert b"two.npz/y/.zarray" in get(both.url + "v2/.zmetadata")
    for wrong in (), ("nothing",), (3,):
        with raises(tessera.Error):
            tessera.serve(*wrong)
    with raises(ValueError, "allow-origin"):
        tessera.serve("a.npy", allow_origins="*")


def test_an_array_of_no_elements_ends_nothing():
    a = tessera.create("a.zarr", (4, 10), "f4")
    with tessera.serve("a.zarr") as server:
        question = server.url + "api/preview?axes=0,1&at=0,0"
        assert len(get(question)) > 0
        a.resize(0, 10)
        with raises(urllib.error.HTTPError, "400"):
            get(question)


def test_a_process_ends_with_its_server():
    np.save("a.npy", np.arange(3))
    for code in ("server = tessera.serve('a.npy')", "tessera.keep = tessera.serve('a.npy')",
                 "s = tessera.serve('a.npy'); import urllib.request as u; u.urlopen(s.url + 'v2/0').read()",
                 "s = tessera.serve('a.npy'); import socket; c = socket.create_connection(('127.0.0.1', s.port))",
                 "s = tessera.serve('a.npy'); raise SystemExit(0)"):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", f"import tessera; {code}"], check=True, timeout=60,
                       env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})
        assert time.monotonic() - started < 30


def test_interrupts_reach_the_main_thread():
    np.save("a.npy", np.arange(3))
    code = ("import tessera, time, sys\ns = tessera.serve('a.npy')\ntry:\n    print(s.url, flush=True)\n"
            "    time.sleep(60)\nexcept KeyboardInterrupt:\n    sys.exit(7)\n")
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": os.environ["TESSERA_MODULE"]})
        get(process.stdout.readline().strip() + "v2/0")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 7
        process.stdout.close()


def in_a_child(server, answers):
    answers.put((server.closed, server.url))
    server.close()
    with tessera.serve("a.npy") as own:
        answers.put(get(own.url + "v2/0"))


def live_on(began):
    began.set()
    time.sleep(60)


def test_forks():
    np.save("a.npy", np.arange(3))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    server = tessera.serve("a.npy")
    for _ in range(3):
        child = context.Process(target=in_a_child, args=(server, answers))
        child.start()
        assert answers.get(timeout=30) == (True, server.url)
        assert answers.get(timeout=30) == np.arange(3).tobytes()
        child.join(30)
        assert child.exitcode == 0
        assert get(server.url + "v2/0") == np.arange(3).tobytes()
    # A child that lives on does not hold the port.
    began = context.Event()
    child = context.Process(target=live_on, args=(began,))
    child.start()
    assert began.wait(30)  # it closes the port as soon as it runs
    server.close()
    with raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=10)
    child.kill()
    child.join()


def test_frames_of_notebooks():
    """The page may be framed by pages of this machine only if that was asked for; other requests stay refused."""
    tessera.save("grid.zarr", np.arange(600.0).reshape(20, 30))
    array = tessera.open("grid.zarr")
    shown = array.show(height=321)
    text = shown._repr_html_()
    assert f'src="{shown.url}"' in text and 'height="321"' in text and text.startswith("<iframe")

    def ask(url, **headers):
        request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.headers["Content-Security-Policy"]
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Security-Policy"]

    framed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}
    status, policy = ask(shown.url, **framed)
    assert status == 200 and policy.endswith("frame-ancestors http://localhost:* http://127.0.0.1:* http://[::1]:*"), policy
    assert ask(shown.url + "api/info", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors", Sec_Fetch_Dest="empty")[0] == 403
    with tessera.serve("grid.zarr") as plain:
        status, policy = ask(plain.url, **framed)
        assert status == 403 and policy.endswith("frame-ancestors 'none'"), policy
    shown.close()
    shown.close()
    assert "closed" in shown._repr_html_() and "closed" in repr(shown)
    with raises(urllib.error.URLError):
        get(shown.url)


def test_thumbnails():
    tessera.save("small.zarr", np.arange(600.0).reshape(20, 30))
    array = tessera.open("small.zarr")
    assert "<img" not in array._repr_html_()
    tessera.thumbnails()
    try:
        assert 'src="data:image/png;base64,iVBOR' in array._repr_html_()
        tessera.save("texts.zarr", np.array(["a", "b"]))
        assert "<img" not in tessera.open("texts.zarr")._repr_html_()
    finally:
        tessera.thumbnails(False)


if __name__ == "__main__":
    module.run(globals())
