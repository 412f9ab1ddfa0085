"""What the driver measures with: HTTP on bare sockets, processes by /proc, a child over its pipes. Linux only."""

import json
import os
import selectors
import shlex
import signal
import socket
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Connection:
    """One kept connection: a request at a time, answered as JSON or as an event stream."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port, self.session, self.buffer = port, None, b""

    def bytes_of(self, method, path, body=None):
        lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{self.port}",
                 "accept: application/json, text/event-stream", "content-type: application/json"]
        if self.session:
            lines.append(f"mcp-session-id: {self.session}")
        data = b"" if body is None else json.dumps(body).encode()
        lines.append(f"content-length: {len(data)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + data

    def take(self):
        """Status, headers and body of an answer that is there whole; else None."""
        head, gap, rest = self.buffer.partition(b"\r\n\r\n")
        if not gap:
            return None
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b""
            while True:
                size, gap, after = rest.partition(b"\r\n")
                if not gap:
                    return None
                length = int(size, 16)
                if len(after) < length + 2:
                    return None
                body, rest = body + after[:length], after[length + 2:]
                if length == 0:
                    break
        else:
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return None
            body, rest = rest[:length], rest[length:]
        self.buffer = rest
        return int(lines[0].split()[1]), headers, body

    def request(self, method, path, body=None):
        self.socket.sendall(self.bytes_of(method, path, body))
        while (answer := self.take()) is None:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise ConnectionError(f"{method} {path}: the connection ended")
            self.buffer += piece
        return answer

    def open_session(self):
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        status, headers, body = self.request("POST", "/mcp/", rpc("initialize", params))
        assert status == 200, body
        self.session = headers["mcp-session-id"]
        self.request("POST", "/mcp/", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self


def rpc(method, params, number=1):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def message_of(headers, body):
    """The last message of an answer."""
    if headers.get("content-type", "").startswith("text/event-stream"):
        body = [line for line in body.decode().splitlines() if line.startswith("data: ") and len(line) > 6][-1][6:]
    return json.loads(body)


class Process:
    """A gateway, ours or the peer's: `{port}` in its command is a free one."""

    def __init__(self, command, log):
        self.port = free_port()
        started = time.perf_counter()
        self.process = subprocess.Popen(shlex.split(command.format(port=self.port)), stdout=log, stderr=log,
                                        start_new_session=True)
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as probe:
                    probe.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
                    if b" 200 " in probe.recv(100):
                        break
            except OSError:
                pass
            if self.process.poll() is not None or time.perf_counter() - started > 60:
                raise RuntimeError(f"does not serve: {command}")
            time.sleep(0.0005)
        self.start_ms = (time.perf_counter() - started) * 1000

    def apps(self, servers):
        started = time.perf_counter()
        status, _, body = Connection(self.port).request("POST", "/apps", {"mcpServers": servers})
        assert status == 200, body
        return (time.perf_counter() - started) * 1000

    def cpu_s(self):
        """Of the process alone, without what it started."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE / (1 << 20)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def load(process, tool, sessions, seconds=None, calls=None):
    """Calls in a closed loop, one at a time for each session: calls a second, latencies in ms, CPU ms a call."""
    selector = selectors.DefaultSelector()
    text = "x" * 100
    request = rpc("tools/call", {"name": tool, "arguments": {"text": text}})
    for _ in range(sessions):
        connection = Connection(process.port).open_session()
        connection.data = connection.bytes_of("POST", "/mcp/", request)
        connection.socket.setblocking(False)
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    cpu, started = process.cpu_s(), time.perf_counter()
    end = started + (seconds or 1e9)
    latencies = []

    def send(connection):
        connection.sent = time.perf_counter()
        connection.socket.send(connection.data)

    def start_all():
        for key in list(selector.get_map().values()):
            send(key.data)

    start_all()
    open_calls = sessions
    while open_calls:
        for key, _ in selector.select(30):
            connection = key.data
            connection.buffer += connection.socket.recv(1 << 16)
            answer = connection.take()
            if answer is None:
                continue
            now = time.perf_counter()
            latencies.append((now - connection.sent) * 1000)
            if len(latencies) == 1:
                message = message_of(answer[1], answer[2])
                assert message["result"]["content"][0]["text"] == text, message
            if now < end and (calls is None or len(latencies) + open_calls <= calls):
                send(connection)
            else:
                open_calls -= 1
    took = time.perf_counter() - started
    cpu = process.cpu_s() - cpu
    for key in list(selector.get_map().values()):
        connection = key.data
        connection.socket.setblocking(True)
        connection.request("DELETE", "/mcp/")
        connection.socket.close()
    return {"rate": len(latencies) / took, "p50": quantile(latencies, 0.5), "p99": quantile(latencies, 0.99),
            "cpu_ms": cpu * 1000 / len(latencies)}


class Pipes:
    """The server itself over its pipes, without a gateway between."""

    def __init__(self, command, arguments):
        started = time.perf_counter()
        self.process = subprocess.Popen([command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask(rpc("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}))
        self.ask(rpc("tools/list", {}))
        self.ready_ms = (time.perf_counter() - started) * 1000

    def ask(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def latencies(self, seconds):
        message = rpc("tools/call", {"name": "echo", "arguments": {"text": "x" * 100}})
        line = json.dumps(message).encode() + b"\n"
        found, end = [], time.perf_counter() + seconds
        while (sent := time.perf_counter()) < end:
            self.process.stdin.write(line)
            self.process.stdin.flush()
            self.process.stdout.readline()
            found.append((time.perf_counter() - sent) * 1000)
        return found

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
