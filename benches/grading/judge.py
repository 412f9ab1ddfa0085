"""A judge that answers at once: an OpenAI-compatible server of the standard library.

    python judge.py PORT_FILE

Writes its port to PORT_FILE. `GET /` gives the times (seconds since 1970) of the first and the last question and how
many there were; `DELETE /` forgets them.
"""

import asyncio
import json
import pathlib
import sys
import time

VERDICT = json.dumps({"rationale": "It holds.", "is_criteria_true": True})
ANSWER = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "judge",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": VERDICT}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
}
times = []


def answer(method):
    if method == "POST":
        times.append(time.time())
        return ANSWER
    if method == "DELETE":
        times.clear()
    return {"first": times[0] if times else None, "last": times[-1] if times else None, "count": len(times)}


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            length = next((int(line.split(":")[1]) for line in head if line.lower().startswith("content-length:")), 0)
            await reader.readexactly(length)
            body = json.dumps(answer(head[0].split(" ")[0])).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 26)
    port_file = pathlib.Path(sys.argv[1])
    part = port_file.with_suffix(".part")
    part.write_text(str(server.sockets[0].getsockname()[1]))
    part.rename(port_file)
    await server.serve_forever()


asyncio.run(main())
