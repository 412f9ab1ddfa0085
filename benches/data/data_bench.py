#!/usr/bin/env python3
"""Worlds into an environment and out of it, against tar, gzip and pigz in the same run.

    cargo build --release -p archipelago-env
    python3 benches/data/data_bench.py --program target/release/archipelago-env --work /var/tmp/data-bench

Only the standard library is used; GNU tar, gzip and pigz have to be on the PATH. Rounds are interleaved: each
contestant has its turn in every round. Of each the round with the least wall time counts, with the CPU time of that
round. The README beside this file says what the columns mean.
"""

import argparse
import http.client
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

MB = 1_000_000
WORDS = [word.encode() for word in "ledger claim invoice north-west quarterly 2026-03-14 17.50 total approved".split()]
PIECE = 1 << 20


# ---------------------------------------------------------------- worlds

def prose(draw, size):
    """Text of which deflate leaves about a third."""
    out = bytearray()
    while len(out) < size:
        out += draw.choice(WORDS) + b" " + (b"%x" % draw.getrandbits(20)) + b"\n"
    return bytes(out[:size])


def write_content(file, draw, size, text):
    block = prose(draw, min(size, PIECE)) if text else None
    while size > 0:
        piece = block if text else draw.randbytes(min(size, PIECE))
        file.write(piece[:size])
        size -= len(piece)


def one_file(folder, draw):
    with open(folder / "one.bin", "wb") as file:
        for part in range(20):
            write_content(file, draw, 50 * MB, part % 2 == 0)


def mixed(folder, draw):
    left, number = 300 * MB, 0
    while left > 0:
        size = min(left, draw.choice([2_000, 40_000, 400_000, 4 * MB]))
        place = folder / f"department-{number % 12}" / f"case-{number % 5}"
        place.mkdir(parents=True, exist_ok=True)
        with open(place / f"document-{number}", "wb") as file:
            write_content(file, draw, size, number % 2 == 0)
        left -= size
        number += 1


def small(folder, draw):
    for number in range(50_000):
        place = folder / f"{number // 500:03}"
        place.mkdir(exist_ok=True)
        (place / f"note-{number}.txt").write_bytes(prose(draw, draw.randint(100, 4000)))


WORLDS = {"1 GB, one file": one_file, "300 MB, mixed": mixed, "50,000 small files": small}


def make_world(work, number, make):
    """The files of a world and its archive; kept between runs."""
    folder, archive = work / f"world-{number}", work / f"world-{number}.tar.gz"
    if not archive.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder, random.Random(number))
        with open(archive.with_suffix(".part"), "wb") as out:
            pipe([["tar", "-C", folder, "-cf", "-", "."], ["pigz", "-1"]], out)
        archive.with_suffix(".part").rename(archive)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return folder, archive, size


def set_aside(work, path):
    """Out of the way until the end: while the numbers of many deleted files are fresh, ext4 looks long for new ones."""
    attic = work / "attic"
    attic.mkdir(exist_ok=True)
    path.rename(attic / str(len(list(attic.iterdir()))))


# ---------------------------------------------------------------- contestants

def pipe(commands, out):
    """Runs programs into each other: wall and CPU seconds, and the largest resident memory of one (MiB)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    running, source = [], None
    for position, command in enumerate(commands):
        last = position == len(commands) - 1
        child = subprocess.Popen(command, stdin=source, stdout=out if last else subprocess.PIPE)
        if source:
            source.close()
        source = child.stdout
        running.append(child)
    for command, child in zip(commands, running):
        if child.wait() != 0:
            raise SystemExit(f"{command[0]} failed with {child.returncode}")
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu}


class Environment:
    """A server of its own, in a folder of its own."""

    def __init__(self, program, work):
        self.work, self.home = work, work / "environment"
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self.files = self.home / "filesystem"
        self.process = subprocess.Popen(
            [program, "--port", "0", "--filesystem-root", self.files, "--apps-data-root", self.home / ".apps_data"],
            env={**os.environ, "RUST_LOG": "warn", "ENV_AUTH_TOKEN": "", "ENV": "local"},
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stderr.readline().rsplit(":", 1)[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        shutil.rmtree(self.home)

    def empty(self):
        for entry in list(self.files.iterdir()):
            set_aside(self.work, entry)

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def measured(self, act):
        """What `act` costs this server, and how long /health takes meanwhile."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        probe = subprocess.Popen([sys.executable, __file__, "--probe", str(self.port)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        probe.stdout.readline()
        cpu, started = self.cpu(), time.perf_counter()
        act()
        result = {"wall": time.perf_counter() - started, "cpu": self.cpu() - cpu, "peak": self.peak()}
        probe.stdin.close()
        times = json.loads(probe.stdout.read())
        probe.wait()
        result["health"] = max(times)
        return result

    def populate(self, archive):
        self.empty()
        return self.measured(lambda: self.upload(archive))

    def upload(self, archive):
        edge = "edge-of-the-form"
        head = (f'--{edge}\r\nContent-Disposition: form-data; name="archive"; filename="world.tar.gz"\r\n'
                "Content-Type: application/gzip\r\n\r\n").encode()
        tail = f"\r\n--{edge}--\r\n".encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.putrequest("POST", "/data/populate")
        connection.putheader("Content-Type", f"multipart/form-data; boundary={edge}")
        connection.putheader("Content-Length", str(len(head) + archive.stat().st_size + len(tail)))
        connection.endheaders()
        connection.send(head)
        with open(archive, "rb") as file:
            connection.sock.sendfile(file)
        connection.send(tail)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"populate: {answer.status} {body[:300]}")
        connection.close()

    def snapshot(self, query, out):
        sizes = []
        result = self.measured(lambda: sizes.append(self.download(query, out)))
        result["bytes"] = sizes[0]
        return result

    def download(self, query, out):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("POST", f"/data/snapshot{query}")
        answer = connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"snapshot: {answer.status}")
        buffer, total = bytearray(1 << 18), 0
        while count := answer.readinto(buffer):
            out.write(memoryview(buffer)[:count])
            total += count
        connection.close()
        return total


def probe(port):
    """Asks /health every 20 ms until its input closes; a process of its own, so that nothing else delays it."""
    import select
    times, told = [], False
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        started = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        connection.getresponse().read()
        connection.close()
        times.append((time.perf_counter() - started) * 1000)
        if not told:
            print("ready", flush=True)
            told = True
    print(json.dumps(times[1:] or times))


# ---------------------------------------------------------------- the run

SNAPSHOTS = {
    "tar \\| gzip -6": [["gzip", "-6"]],
    "tar \\| pigz (-6)": [["pigz"]],
    "tar \\| pigz -1": [["pigz", "-1"]],
}


def rounds_of(world, environment, work, rounds):
    folder, archive, size = world
    results = {}

    def note(kind, name, result):
        results.setdefault((kind, name), []).append(result)

    with open(os.devnull, "wb") as nowhere:
        for _ in range(rounds):
            note("populate", "environment", environment.populate(archive))
            target = work / "extracted"
            if target.exists():
                set_aside(work, target)
            target.mkdir()
            note("populate", "tar -xzf", pipe([["tar", "-C", target, "-xzf", archive]], nowhere))
            note("snapshot", "environment", environment.snapshot("", nowhere))
            for name, packer in SNAPSHOTS.items():
                note("snapshot", name, pipe([["tar", "-C", folder, "-cf", "-", "."], *packer], nowhere))
            note("snapshot", "environment, tar.zst", environment.snapshot("?format=tar.zst", nowhere))
    check(environment, work, folder)
    return size, results


def check(environment, work, folder):
    """Two snapshots are the same bytes, and what is in them is the world."""
    paths = [work / "one.tar.gz", work / "two.tar.gz"]
    for path in paths:
        with open(path, "wb") as out:
            environment.download("", out)
    subprocess.run(["cmp", *paths], check=True)
    unpacked = work / "checked"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    subprocess.run(["tar", "-C", unpacked, "-xzf", paths[0]], check=True)
    subprocess.run(["diff", "-r", folder, unpacked / "filesystem"], check=True)
    for path in paths:
        path.unlink()
    shutil.rmtree(unpacked)


def row(world, kind, name, size, rounds):
    best = min(rounds, key=lambda one: one["wall"])
    health = f"{max(one['health'] for one in rounds):.0f}" if "health" in best else ""
    peak = f"{max(one['peak'] for one in rounds):.0f}" if "peak" in best else ""
    rate = size / MB / best["wall"]
    return f"| {world} | {kind} | {name} | {rate:.0f} | {best['wall']:.2f} | {best['cpu']:.2f} | {peak} | {health} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the release build of archipelago-env")
    parser.add_argument("--work", type=Path, help="a folder on a disk with 8 GB left")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worlds", default=",".join(map(str, range(len(WORLDS)))), help="numbers, from 0")
    parser.add_argument("--probe", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        return probe(options.probe)
    if not options.program or not options.work:
        parser.error("--program and --work are needed")
    options.work.mkdir(parents=True, exist_ok=True)
    print("| world | what | by | MB/s | wall s | CPU s | peak MiB | /health ms |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for number in map(int, options.worlds.split(",")):
        name, make = list(WORLDS.items())[number]
        world = make_world(options.work, number, make)
        environment = Environment(options.program, options.work)
        try:
            size, results = rounds_of(world, environment, options.work, options.rounds)
        finally:
            environment.stop()
            for left in ("attic", "extracted"):
                shutil.rmtree(options.work / left, ignore_errors=True)
        for (kind, contestant), rounds in results.items():
            print(row(name, kind, contestant, size, rounds), flush=True)


if __name__ == "__main__":
    main()
