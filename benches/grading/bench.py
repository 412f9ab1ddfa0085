"""Measures grading and comparison of worlds beside a peer of Python parts, in turns. See README.md.

    python bench.py --bin target/release --peer-python PYTHON --work FOLDER [--rounds 5] [--big-rounds 3]
"""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

HERE = pathlib.Path(__file__).parent
WORDS = [b"%x" % (n * 2654435761 % 2**32) for n in range(4000)]


def content(rng, size, text):
    """Words in lines of twelve, or bytes that do not compress."""
    if not text:
        return rng.randbytes(size)
    words = rng.choices(WORDS, k=size // 9 + 1)
    lines = b"\n".join(b" ".join(words[at:at + 12]) for at in range(0, len(words), 12))
    return (lines + b"\n" * size)[:size]


def files(kind):
    """Path and size of each file of a world."""
    rng = random.Random(kind)
    if kind == "tiny":
        for number in range(5):
            yield f"filesystem/notes/n{number}.txt", 2000
    elif kind == "large":
        total = number = 0
        while total < 300_000_000:
            size = int(4096 * 2 ** rng.uniform(0, 11))
            yield f"filesystem/dir{number % 20}/file{number:05d}.{'bin' if number % 2 else 'txt'}", size
            total += size
            number += 1
    else:
        for number in range(20_000):
            yield f"filesystem/d{number % 200:03d}/f{number:05d}.txt", rng.randint(200, 4096)


def make(work, kind):
    """Two zips; one in a hundred files is edited, removed or added, in turn."""
    pair = [work / f"{kind}-before.zip", work / f"{kind}-after.zip"]
    if all(path.exists() for path in pair):
        return pair
    every = 4 if kind == "tiny" else 100
    parts = [path.with_suffix(".part") for path in pair]
    with zipfile.ZipFile(parts[0], "w", zipfile.ZIP_DEFLATED) as before, zipfile.ZipFile(parts[1], "w", zipfile.ZIP_DEFLATED) as after:
        for number, (name, size) in enumerate(files(kind)):
            rng = random.Random(number)
            data = content(rng, size, name.endswith(".txt"))
            before.writestr(name, data)
            which = number // every % 3 if number % every == 0 else None
            if which == 0:
                after.writestr(name, data[:size // 2] + b" EDITED " + data[size // 2:])
            elif which == 1:
                after.writestr(name + ".new.txt", content(rng, 1500, True))
                after.writestr(name, data)
            elif which is None:
                after.writestr(name, data)
    for part, path in zip(parts, pair):
        part.rename(path)
    return pair


class Judge:
    def __init__(self, folder):
        port_file = folder / "port"
        self.child = subprocess.Popen([sys.executable, HERE / "judge.py", port_file])
        while not port_file.exists():
            time.sleep(0.01)
        self.port = int(port_file.read_text())

    def ask(self, method):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, "/")
        return json.load(connection.getresponse())

    def end(self):
        self.child.terminate()
        self.child.wait()


class Peak(threading.Thread):
    """Peak memory of a process, looked at every two milliseconds. What `wait4` tells (`ru_maxrss`) begins with the memory
    of the process that started it, which is this one."""

    def __init__(self, pid):
        super().__init__()
        self.status, self.mib = pathlib.Path(f"/proc/{pid}/status"), 0
        self.start()

    def run(self):
        try:
            while line := re.search(r"VmHWM:\s*(\d+) kB", self.status.read_text()):
                self.mib = int(line[1]) / 1024
                time.sleep(0.002)
        except OSError:
            pass  # It has ended.


def documents(folder, count, port):
    verifiers = [
        {"verifier_id": f"v{n:03d}", "verifier_version": 1, "world_id": None, "task_id": "bench", "eval_config_id": "ec",
         "verifier_values": {"criteria": f"Criterion number {n} holds", "is_primary_objective": n == 0},
         "verifier_index": n, "verifier_dependencies": None}
        for n in range(count)
    ]
    made = {
        "trajectory": {"messages": [{"role": "user", "content": "Do the task."}, {"role": "assistant", "content": "The final answer is 42."}],
                       "status": "completed", "time_elapsed": 1.0},
        "grading-settings": {"llm_judge_model": "openai/judge",
                             "llm_judge_extra_args": {"api_base": f"http://127.0.0.1:{port}/v1", "api_key": "none"}},
        "verifiers": verifiers,
        "eval-configs": [{"eval_config_id": "ec", "eval_config_name": "Output", "eval_defn_id": "output_llm", "eval_config_values": {}}],
        "scoring-config": {"scoring_config_id": "sc", "scoring_config_name": "s", "scoring_defn_id": "template", "scoring_config_values": {}},
    }
    for name, document in made.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return {name: folder / f"{name}.json" for name in made}


def measured(command, judge=None):
    """Seconds, CPU seconds, peak memory and, with a judge, seconds to its first question."""
    if judge:
        judge.ask("DELETE")
    started, clock = time.time(), time.perf_counter()
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = Peak(child.pid)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - clock
    peak.join()
    if status:
        raise SystemExit(f"{command} ended with {status}")
    row = {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "mib": peak.mib}
    if judge:
        times = judge.ask("GET")
        row["questions"] = times["count"]
        row["first"] = times["first"] - started
    return row


def best(rows):
    return {key: min(row[key] for row in rows) for key in rows[0]}


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--bin", type=pathlib.Path, required=True)
    flags.add_argument("--peer-python", type=pathlib.Path)
    flags.add_argument("--work", type=pathlib.Path, required=True)
    flags.add_argument("--rounds", type=int, default=5)
    flags.add_argument("--big-rounds", type=int, default=3)
    flags.add_argument("--cases", default="tiny,large,small")
    asked = flags.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-grading-"))
    judge = Judge(folder)
    results = {}
    try:
        for kind in asked.cases.split(","):
            # In a process of its own: a child's peak begins with that of who starts it.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                before, after = pool.apply(make, (asked.work, kind))
            rounds = asked.rounds if kind == "tiny" else asked.big_rounds
            cases = {}
            for count in (1, 10, 100) if kind == "tiny" else (1,):
                home = folder / f"{kind}-{count}"
                home.mkdir()
                paths = documents(home, count, judge.port)
                ours = [asked.bin / "archipelago-grader", "--grading-run-id", "bench", "--trajectory-id", "bench",
                        "--initial-snapshot", before, "--final-snapshot", after, "--output", home / "grades.json"]
                for name, path in paths.items():
                    ours += [f"--{name}", path]
                theirs = [asked.peer_python, HERE / "peer.py", "grade", before, after, paths["verifiers"],
                          f"http://127.0.0.1:{judge.port}/v1", home / "peer.json"]
                cases[f"{kind}, {count} verifiers"] = (ours, theirs, judge)
            cases[f"{kind}, comparison"] = (
                [asked.bin / "archipelago", "diff", before, after, "--format", "json"],
                [asked.peer_python, HERE / "peer.py", "diff", before, after], None)
            for name, (ours, theirs, with_judge) in cases.items():
                rows = {"archipelago": [], "python": []}
                for _ in range(rounds):
                    rows["archipelago"].append(measured(ours, with_judge))
                    if asked.peer_python:
                        rows["python"].append(measured(theirs, with_judge))
                for who, measurements in rows.items():
                    if measurements:
                        results[f"{name}, {who}"] = best(measurements)
                        print(name, who, {key: round(value, 3) for key, value in best(measurements).items()}, flush=True)
    finally:
        judge.end()
    print("\n| case | | wall s | CPU s | to the first question s | peak MiB |\n| --- | --- | --- | --- | --- | --- |")
    for name, row in results.items():
        case, who = name.rsplit(", ", 1)
        first = f"{row['first']:.2f}" if "first" in row else "–"
        print(f"| {case} | {who} | {row['wall']:.2f} | {row['cpu']:.2f} | {first} | {row['mib']:.0f} |")


if __name__ == "__main__":
    main()
