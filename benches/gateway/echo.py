#!/usr/bin/env python3
"""The MCP server behind both sides: one tool, `echo`, on the wire format, so that what is measured is the gateway."""

import json
import sys

TOOLS = [{"name": "echo", "description": "Says it again.",
          "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]
LISTS = {"tools/list": {"tools": TOOLS}, "resources/list": {"resources": []}, "prompts/list": {"prompts": []},
         "resources/templates/list": {"resourceTemplates": []}, "ping": {}}


def result(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"}}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return LISTS.get(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    answer = result(message["method"], message.get("params") or {})
    outcome = {"error": {"code": -32601, "message": "Method not found"}} if answer is None else {"result": answer}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
    sys.stdout.flush()
