#!/usr/bin/env python3
"""Our gateway beside another one, in turns, with the same servers behind both.

    benches/gateway/run.py --ours "target/release/archipelago-env --host 127.0.0.1 --port {port} …" \
                           --peer "PYTHON fastmcp_gateway.py --port {port}" --out results.json

Either command serves `GET /health`, `POST /apps` and MCP at `/mcp/` on `{port}`. See README.md.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from statistics import median

from measure import Connection, Pipes, Process, load, message_of, quantile, rpc

ECHO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "echo.py")


def servers(count, mark):
    """Configurations that differ in `mark` start their servers anew."""
    one = {"transport": "stdio", "command": sys.executable, "args": [ECHO], "env": {"MARK": str(mark)}}
    return {f"s{number}": one for number in range(count)}


def in_turns(rounds, sides, work):
    """The results of `work` by side, one of each side after the other, so that all meet the same disturbances."""
    results = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides)
        for name in order if number % 2 == 0 else reversed(order):
            results[name].append(work(name, number))
    return results


def middle(samples):
    return {key: round(median(sample[key] for sample in samples), 4) for key in samples[0]}


class Bench:
    def __init__(self, options):
        self.options = options
        self.commands = {"ours": options.ours}
        if options.peer:
            self.commands["peer"] = options.peer
        self.log = tempfile.TemporaryFile()
        self.found = {}

    def say(self, name, value):
        self.found[name] = value
        print(f"{name}: {json.dumps(value)}", flush=True)

    def starts(self):
        def start(name, _):
            process = Process(self.commands[name], self.log)
            found = {"start_ms": process.start_ms, "idle_mib": process.memory_mib()}
            process.stop()
            return found

        results = in_turns(self.options.rounds, self.commands, start)
        self.say("start", {name: {**middle(all_), "best_start_ms": round(min(one["start_ms"] for one in all_), 2)}
                           for name, all_ in results.items()})

    def direct(self):
        child = Pipes(sys.executable, [ECHO])
        rounds = [child.latencies(self.options.seconds) for _ in range(self.options.rounds)]
        child.stop()
        ready = []
        for _ in range(self.options.rounds):
            child = Pipes(sys.executable, [ECHO])
            ready.append(child.ready_ms)
            child.stop()
        self.say("direct", {"p50": round(median(quantile(one, 0.5) for one in rounds), 4),
                            "p99": round(median(quantile(one, 0.99) for one in rounds), 4),
                            "ready_ms": round(median(ready), 2)})

    def with_processes(self, work):
        running = {name: Process(command, self.log) for name, command in self.commands.items()}
        try:
            work(running)
        finally:
            for process in running.values():
                process.stop()

    def applies(self, running):
        for count in (1, 3, 10):
            results = in_turns(self.options.rounds, running, lambda name, number, count=count: {
                "ms": running[name].apps(servers(count, f"{count}-{number}"))})
            self.say(f"apps_{count}", {name: {**middle(all_), "best": round(min(one["ms"] for one in all_), 1)}
                                       for name, all_ in results.items()})

    def ten(self, running):
        """After `applies`: ten servers are there."""
        def lists(name, _):
            connection = Connection(running[name].port).open_session()
            body = rpc("tools/list", {})
            found = []
            for _ in range(self.options.lists):
                sent = time.perf_counter()
                _, headers, answer = connection.request("POST", "/mcp/", body)
                found.append((time.perf_counter() - sent) * 1000)
            assert len(message_of(headers, answer)["result"]["tools"]) == 10
            return {"p50": quantile(found, 0.5), "best": min(found)}

        results = in_turns(self.options.rounds, running, lists)
        self.say("tools_list_10", {name: middle(all_) for name, all_ in results.items()})
        self.say("memory_10_servers_mib", {name: round(process.memory_mib(), 1) for name, process in running.items()})

    def calls(self, running):
        for process in running.values():
            process.apps(servers(1, "calls"))
        for sessions in (1, 8, 32):
            results = in_turns(self.options.rounds, running, lambda name, _, sessions=sessions: load(
                running[name], "echo", sessions, seconds=self.options.seconds))
            self.say(f"calls_{sessions}_sessions", {name: middle(all_) for name, all_ in results.items()})
        for process in running.values():
            process.apps(servers(3, "calls"))
        results = in_turns(self.options.rounds, running, lambda name, _: load(
            running[name], "s1_echo", 1, seconds=self.options.seconds))
        self.say("calls_3_servers", {name: middle(all_) for name, all_ in results.items()})

    def growth(self, running):
        process = running["ours"]
        process.apps(servers(1, "growth"))
        load(process, "echo", 8, calls=5_000)
        mib = [round(process.memory_mib(), 2)]
        # Twice, because what the allocator keeps after the first is no growth.
        for _ in range(2):
            load(process, "echo", 8, calls=self.options.many)
            mib.append(round(process.memory_mib(), 2))
        self.say("growth", {"calls": self.options.many, "mib": mib})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one round of calls")
    parser.add_argument("--lists", type=int, default=20, help="how many lists make a round")
    parser.add_argument("--many", type=int, default=100_000, help="calls between two looks at memory")
    parser.add_argument("--out")
    bench = Bench(parser.parse_args())
    bench.starts()
    bench.direct()
    bench.with_processes(lambda running: (bench.applies(running), bench.ten(running)))
    bench.with_processes(bench.calls)
    bench.with_processes(bench.growth)
    if bench.options.out:
        with open(bench.options.out, "w", encoding="utf-8") as file:
            json.dump(bench.found, file, indent=1)


if __name__ == "__main__":
    main()
