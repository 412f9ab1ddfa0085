#!/usr/bin/env python3
"""What a model call costs on this side of the wire: llm-client against LiteLLM's SDK.

    cargo build --release -p llm-client --example overhead
    cargo build --release -p testkit --example stub_openai
    python3 -m venv target/bench/venv && target/bench/venv/bin/pip install litellm
    python3 benches/llm/bench_llm.py target/release/examples target/bench/venv/bin/python

Both talk to the same stub in a process of its own, in turns, in the same run. CPU time is what the system
charges a finished process (user and system, all threads). The cost of a call is the difference between a process
with many calls and one with a single call, divided by the number of further calls; the smallest of the rounds counts.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 3
# A start of LiteLLM differs by half a second of CPU from one to the next; many calls make that small.
CALLS = {"llm-client": 4001, "LiteLLM": 1501}
SIDE_BY_SIDE = 32
IN_FLIGHT = 500


def request():
    """A conversation in the middle of a trial: 20 turns with calls and results, 20 tools."""
    text = "The quarterly figures of the northern branch stand in the third sheet of the workbook. " * 8
    messages = [{"role": "system", "content": text}, {"role": "user", "content": text}]
    for number in range(20):
        call = {"id": f"call_{number}", "type": "function",
                "function": {"name": f"tool_{number % 20}", "arguments": json.dumps({"path": f"/folder/{number}.xlsx"})}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text})
    properties = {name: {"type": "string", "description": text[:80]} for name in ("path", "sheet", "range", "format")}
    schema = {"type": "object", "properties": properties, "required": ["path"]}
    tools = [{"type": "function", "function": {"name": f"tool_{number}", "description": text[:160], "parameters": schema}}
             for number in range(20)]
    return {"messages": messages, "tools": tools}


class Stub:
    """The stub in a process of its own."""

    def __init__(self, program, milliseconds):
        self.process = subprocess.Popen([program, str(milliseconds)], stdout=subprocess.PIPE, text=True)
        self.variables = dict(pair.split("=", 1) for pair in self.process.stdout.readline().split())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def measure(command, variables):
    """Wall seconds, CPU seconds and peak memory in MiB of one process."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    started = time.monotonic()
    process = subprocess.Popen(command, env=environment | variables)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    if status != 0:
        sys.exit(f"failed: {command}")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(examples, python):
    here = Path(__file__).parent
    commands = {"llm-client": [f"{examples}/overhead"], "LiteLLM": [python, str(here / "with_litellm.py")]}
    bare = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "request.json"
        file.write_text(json.dumps(request()))
        per_call = {name: [] for name in commands}
        crowded = {name: [] for name in commands}
        first = {name: [] for name in commands}
        start_cpu = {name: [] for name in commands}
        memory = {name: [] for name in commands}
        with Stub(f"{examples}/stub_openai", 0) as stub:
            for _ in range(ROUNDS):
                few, many = (measure([f"{examples}/overhead", str(file), str(calls), "bare"], stub.variables)[1] for calls in (1, 4001))
                bare.append((many - few) / 4000)
                for name, command in commands.items():
                    wall, once, _ = measure([*command, str(file), "1", "1"], stub.variables)
                    _, many, _ = measure([*command, str(file), str(CALLS[name]), "1"], stub.variables)
                    first[name].append(wall)
                    start_cpu[name].append(once)
                    per_call[name].append((many - once) / (CALLS[name] - 1))
                    _, many, _ = measure([*command, str(file), str(CALLS[name]), str(SIDE_BY_SIDE)], stub.variables)
                    crowded[name].append((many - once) / (CALLS[name] - 1))
        # Answers take long enough that all calls are in flight at once.
        with Stub(f"{examples}/stub_openai", 8000) as stub:
            for _ in range(2):
                for name, command in commands.items():
                    number = str(IN_FLIGHT)
                    memory[name].append(measure([*command, str(file), number, number], stub.variables)[2])
    rows = [
        ("CPU per call, µs", per_call, 1e6, "{:.0f}"),
        (f"CPU per call, {SIDE_BY_SIDE} in flight, µs", crowded, 1e6, "{:.0f}"),
        ("start to first answer, ms of wall time", first, 1e3, "{:.0f}"),
        ("start to first answer, ms of CPU", start_cpu, 1e3, "{:.0f}"),
        (f"peak memory with {IN_FLIGHT} calls in flight, MiB", memory, 1, "{:.0f}"),
    ]
    print(f"| best of {ROUNDS} rounds (memory: 2) | llm-client | LiteLLM | times |\n| --- | ---: | ---: | ---: |")
    for name, values, factor, shape in rows:
        ours, theirs = (min(values[who]) * factor for who in ("llm-client", "LiteLLM"))
        print(f"| {name} | {shape.format(ours)} | {shape.format(theirs)} | {theirs / ours:.0f} |")
    floor = min(bare) * 1e6
    ours, theirs = (min(per_call[who]) * 1e6 - floor for who in ("llm-client", "LiteLLM"))
    print(f"| CPU per call beside that of the bare socket ({floor:.0f} µs) | {ours:.0f} | {theirs:.0f} | {theirs / ours:.0f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
