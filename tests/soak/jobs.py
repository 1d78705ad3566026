#!/usr/bin/env python3
"""Jobs in units (`plan`, `work`, `finish`): killed at random, shared in every way, and what they cost.

    jobs.py build/release/tools/tessera [--kills 1000] [--mib 4096] [--folder /dev/shm] [--seed N]

First `--kills` SIGKILLs hit processes that work and processes that finish, at random moments; each job is started again
until it is finished. Its digest is that of the plain command, no file is left over, and nothing opens before. The same
with a target in S3 (the server of our own of tests/cli), which loses and refuses some answers. Then three hosts share a
job in a folder and one in S3, and one of them is cut off for longer than its lease: namespaces of this machine, each
with a name, processes and a network of its own, where root may make these. Then a
rechunk of `--mib` MiB is done by four processes by parts, by claims, and by mpirun, GNU parallel and srun where these
are installed. The times beside those of the plain command are printed, not judged: the machine may be busy.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli"))
import remote

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program")
parser.add_argument("--kills", type=int, default=1000)
parser.add_argument("--mib", type=int, default=4096)
parser.add_argument("--folder", help="where the arrays are made (default: the system's for temporary files)")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)
program = os.path.abspath(options.program)


def run(*words, code=0, **how):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False, **how)
    assert done.returncode == code, (words, done)
    return done.stdout


def source(name, mib):
    """An array of chunks that lie along the other dimensions than those of the target."""
    side = max(64, int((mib * 2**20 / 4 / 64) ** 0.5) // 64 * 64)
    run("calc", name, "where(x == 5, 0, x * 3 + y)", f"x={ramp(64, 1, 1)}", f"y={ramp(1, side, side)}", "--overwrite",
        "--chunks", f"1,{max(side // 4, 64)},{side}", "--format", "v3", "--quiet")
    return side


def ramp(*shape):
    import numpy as np

    name = "ramp-" + "-".join(map(str, shape)) + ".npy"
    np.save(name, (np.arange(int(np.prod(shape))) % 4099).reshape(shape).astype("i4"))
    return name


def digest(path):
    return run("digest", path).split()[0]


def count(path):
    """Files, but for what Tessera keeps for itself."""
    return sum(p.is_file() and ".tessera" not in p.parts for p in pathlib.Path(path).rglob("*"))


def forget(*names):
    for name in names:
        if os.path.isdir(name):
            shutil.rmtree(name)
        elif os.path.exists(name):
            os.remove(name)


def killed(out, place):
    """`place` is where the folder of the target `out` lies."""
    side = source("small.zarr", 16)
    target = ["--chunks", f"64,{side // 16},{side // 16}"]
    run("rechunk", "small.zarr", "plain.zarr", *target, "--quiet", "--overwrite")
    wanted = digest("plain.zarr")
    files = count("plain.zarr")
    kills = jobs = 0
    while kills < options.kills:
        forget(place, "job.json")
        run("plan", "rechunk", "small.zarr", out, *target, "--out", "job.json", "--parts", 8, "--max-memory", "4M", "--quiet")
        jobs += 1
        while True:
            ways = [["--claim", "--lease", "1s"], ["--claim"], ["--part", f"{chance.randrange(8)}/8"], []]
            begun = [subprocess.Popen([program, "work", "job.json", "--quiet", *chance.choice(ways)], stderr=subprocess.DEVNULL)
                     for _ in range(chance.randint(1, 4))]
            time.sleep(chance.uniform(0, 0.3))
            for process in begun:
                if chance.random() < 0.8 and process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
            for process in begun:
                process.wait()
            for _ in range(chance.randint(0, 2)):
                finish = subprocess.Popen([program, "finish", "job.json", "--quiet"], stderr=subprocess.DEVNULL)
                time.sleep(chance.uniform(0, 0.05 if out == place else 0.3))
                if finish.poll() is None:
                    finish.send_signal(signal.SIGKILL)
                    kills += 1
                finish.wait()
            state = json.loads(subprocess.run([program, "job", "job.json", "--json"], capture_output=True, text=True, check=False).stdout)
            opened = os.path.exists(f"{place}/zarr.json")
            if opened or state["finished"]:
                assert digest(out) == wanted
            if not state["missing_units"]:
                run("finish", "job.json", "--quiet")
                break
        assert digest(out) == wanted
        assert count(place) == files
        assert not [name for name in os.listdir() if name.startswith(".out")]
    print(f"{out}: {kills} kills in {jobs} jobs: nothing lost, nothing doubled, nothing left over", flush=True)


class Host:
    """A namespace with a name, processes and a network of its own, and with one cable to this machine."""

    def __init__(self, number):
        self.keeper = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--pid", "--fork",
                                        "--mount-proc", "--kill-child", "sh", "-c",
                                        f"hostname host{number}; echo; exec sleep infinity >&-"], stdout=subprocess.PIPE)
        self.keeper.stdout.readline()
        self.process = pathlib.Path(f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children").read_text().split()[0]
        self.cable, self.here = f"tessera{number}", f"10.231.{number}.1"
        for words in (f"ip link add {self.cable} type veth peer name cable netns {self.process}",
                      f"ip addr add {self.here}/30 dev {self.cable}", f"ip link set {self.cable} up",
                      f"nsenter -t {self.process} -n ip addr add 10.231.{number}.2/30 dev cable",
                      f"nsenter -t {self.process} -n ip link set cable up"):
            subprocess.run(words.split(), check=True)

    def begin(self, *words, **how):
        return subprocess.Popen(["nsenter", "-t", self.process, "-n", "-u", "-p", "-m", program, *words], **how)

    def connect(self, on):
        subprocess.run(["ip", "link", "set", self.cable, "up" if on else "down"], check=True)

    def end(self):
        self.keeper.kill()
        self.keeper.wait()


def hosts():
    """In a folder, that a host is cut off means that its processes stand still."""
    if os.geteuid() != 0 or not shutil.which("ip") or subprocess.run(["unshare", "--net", "--uts", "--pid", "--fork", "true"],
                                                                    stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("hosts: skipped: no namespaces for this user, or no ip")
        return
    side = source("small.zarr", 128)
    target = ["--chunks", f"8,{side // 8},{side // 8}"]
    run("rechunk", "small.zarr", "plain.zarr", *target, "--quiet", "--overwrite")
    wanted = digest("plain.zarr")
    with contextlib.ExitStack() as stack:
        three = []
        for number in range(3):
            three.append(Host(number))
            stack.callback(three[-1].end)
        os.makedirs("bucket-of-hosts")
        double = stack.enter_context(remote.serving(pathlib.Path("bucket-of-hosts").absolute(), host=""))
        double.faults.delay = 0.02
        for out in "out.zarr", "s3://bucket/out":
            forget("out.zarr", "job.json")
            environment = {**os.environ, **double.environment}
            run("plan", "rechunk", "small.zarr", out, *target, "--out", "job.json", "--max-memory", "4M", "--quiet",
                env=environment)
            job = json.loads(run("job", "job.json", "--json", code=1, env=environment))
            port = double.origin.rpartition(":")[2]
            begun = [host.begin("work", os.path.abspath("job.json"), "--claim", "--lease", "1s", "--threads", "1", "--quiet",
                                env={**environment, "AWS_ENDPOINT_URL": f"http://{host.here}:{port}"}) for host in three]
            time.sleep(0.03 if out == "out.zarr" else 0.5)
            inner = pathlib.Path(f"/proc/{begun[0].pid}/task/{begun[0].pid}/children").read_text().split()
            assert begun[0].poll() is None and inner, "it was faster than the test"
            if out == "out.zarr":
                os.kill(int(inner[0]), signal.SIGSTOP)
            else:
                three[0].connect(False)
            others = [process.wait() for process in begun[1:]]
            time.sleep(1.5)
            if out == "out.zarr":
                for stopped in int(inner[0]), begun[0].pid:  # nsenter stops with what it began
                    os.kill(stopped, signal.SIGCONT)
            else:
                three[0].connect(True)
            ends = [begun[0].wait(), *others]
            assert ends == [0, 0, 0], ends
            run("finish", "job.json", "--quiet", env=environment)
            assert run("digest", out, env=environment).split()[0] == wanted
            print(f"hosts: {out}: {job['units']} units by three, of which one was cut off", flush=True)
        forget("out.zarr")


@contextlib.contextmanager
def slurm():
    """Slurm on this machine alone, as root: one node of four processors, however many there are."""
    with tempfile.TemporaryDirectory() as place:
        host = socket.gethostname()
        folder = pathlib.Path(place)
        folder.chmod(0o755)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)
        (folder / "slurm.conf").write_text(f"""ClusterName=one
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
SlurmUser=root
SlurmdUser=root
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES
""")
        os.environ["SLURM_CONF"] = f"{place}/slurm.conf"
        begun = [subprocess.Popen(words, stderr=subprocess.DEVNULL) for words in (
            ["munged", "--foreground", "--force", f"--key-file={place}/munge.key", f"--socket={place}/munge.socket",
             f"--pid-file={place}/munged.pid", f"--log-file={place}/munged.log", f"--seed-file={place}/seed"],
            ["slurmctld", "-D"], ["slurmd", "-D"])]
        try:
            time.sleep(5)
            subprocess.run(["srun", "-n", "1", "true"], check=True, timeout=60)
            yield
        finally:
            for process in begun:
                process.terminate()
                process.wait()


def shared():
    side = source("large.zarr", options.mib)
    target = ["--chunks", f"64,{side // 32},{side // 32}"]
    began = time.monotonic()
    run("rechunk", "large.zarr", "plain.zarr", *target, "--overwrite", "--quiet")
    plain = time.monotonic() - began
    wanted = digest("plain.zarr")
    work = f"{program} work job.json --quiet --threads 1"
    ways = {"one process": f"{program} work job.json --quiet",
            "parts": f"for i in 0 1 2 3; do {work} --part $i/4 & done; wait",
            "claims": f"for i in 1 2 3 4; do {work} --claim & done; wait"}
    if shutil.which("mpirun"):
        ways["mpirun"] = f"mpirun --allow-run-as-root --oversubscribe -n 4 {work} --part auto"
    if shutil.which("parallel"):
        ways["parallel"] = f"parallel --jobs 4 {work} --part {{}}/4 ::: 0 1 2 3"
    if shutil.which("slurmctld") and shutil.which("munged") and os.geteuid() == 0:
        ways["srun"] = f"srun -n 4 --oversubscribe --overlap {work} --part auto"
    print(f"plain: {plain:.1f} s")
    for name, command in ways.items():
        forget("out.zarr", "job.json")
        with slurm() if name == "srun" else contextlib.nullcontext():
            began = time.monotonic()
            run("plan", "rechunk", "large.zarr", "out.zarr", *target, "--out", "job.json", "--parts", 4, "--quiet")
            subprocess.run(["bash", "-c", command], check=True)
            run("finish", "job.json", "--quiet")
            took = time.monotonic() - began
        assert digest("out.zarr") == wanted, name
        print(f"{name}: {took:.1f} s")


with tempfile.TemporaryDirectory(dir=options.folder) as place:
    os.chdir(place)
    try:
        killed("out.zarr", "out.zarr")
        os.mkdir("bucket")
        with remote.serving(pathlib.Path("bucket").absolute()) as double:
            os.environ.update(double.environment)
            double.faults.lose = double.faults.busy = double.faults.reset = 0.01
            killed("s3://bucket/out", "bucket/out")
        hosts()
        shared()
    finally:
        os.chdir("/")
sys.exit(0)
