"""What the soak scripts share: sizes as text, and running the program with its memory and reads measured."""
import argparse
import os
import subprocess
import sys
import time


def size(text):
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]] if text[-1] in "KMG" else int(text)


def arguments(description, default_size, max_memory="256M", limit="400M"):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--size", default=default_size, type=size)
    parser.add_argument("--max-memory", default=max_memory)
    parser.add_argument("--limit", default=limit, type=size)
    parser.add_argument("--folder", help="where to work (default: the folder for temporary files)")
    return parser.parse_args()


def bytes_read(pid):
    """What a process that has ended, but was not waited for, took from read calls in all."""
    with open(f"/proc/{pid}/io") as file:
        return int(dict(line.split(": ") for line in file)["rchar"])


def measured(command, limit, environment=None):
    """Runs a command, checks its peak resident memory, and returns how many bytes it read."""
    start = time.monotonic()
    process = subprocess.Popen(command, env=environment)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    read = bytes_read(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss * 1024
    shown = " ".join(str(word) for word in command[1:])
    print(f"{time.monotonic() - start:7.1f} s  peak {peak / 2**20:6.1f} MiB  read {read / 2**20:8.1f} MiB  tessera {shown}",
          flush=True)
    if process.returncode != 0:
        sys.exit(f"exit code {process.returncode}")
    if peak >= limit:
        sys.exit(f"peak memory is not below {limit / 2**20:.0f} MiB")
    return read
