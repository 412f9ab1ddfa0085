#!/usr/bin/env python3
"""The MCP server that the conformance scenarios are run against, behind the gateway.

It speaks the handshake era over stdio (newline-delimited JSON-RPC, standard library only) and offers what the server
scenarios of the npm package @modelcontextprotocol/conformance call by name. Whatever belongs to a newer revision is
the gateway's to make of it.
"""

import json
import sys
import threading
import time

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQAAAAA="
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Refusal(Exception):
    """A JSON-RPC error."""

    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Wire:
    """The two pipes, and requests of the server's own that wait for the client."""

    def __init__(self):
        self.lock = threading.Lock()
        self.waiting = {}
        self.level = "debug"
        self.subscribed = set()
        self.used = {}

    def send(self, message):
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def notify(self, method, params=None):
        self.send({"method": method, "params": params or {}})

    def log(self, level, data):
        if LEVELS.index(level) >= LEVELS.index(self.level):
            self.notify("notifications/message", {"level": level, "logger": "conformance", "data": data})

    def ask_all(self, requests):
        """Puts requests (method and params by name) side by side; returns their results or raises the first error.

        The name is the id of a request as long as it was not used before: a scenario wants to see it.
        """
        done = {}
        arrived = threading.Condition()

        def keep(name):
            def take(answer):
                with arrived:
                    done[name] = answer
                    arrived.notify()

            return take

        for name, (method, params) in requests.items():
            with self.lock:
                used = self.used[name] = self.used.get(name, 0) + 1
            unique = name if used == 1 else f"{name}.{used}"
            self.waiting[unique] = keep(name)
            self.send({"id": unique, "method": method, "params": params})
        with arrived:
            if not arrived.wait_for(lambda: len(done) == len(requests), timeout=30):
                raise Refusal(-32603, "the client did not answer within 30 s")
        for answer in done.values():
            if "error" in answer:
                raise Refusal(answer["error"]["code"], answer["error"]["message"])
        return {name: answer["result"] for name, answer in done.items()}

    def ask(self, name, method, params):
        return self.ask_all({name: (method, params)})[name]


WIRE = Wire()


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def schema(properties=None, required=()):
    return {"type": "object", "properties": properties or {}, "required": list(required)}


def form(message, properties):
    return "elicitation/create", {"message": message, "requestedSchema": schema(properties, properties)}


def sample(prompt, limit=100):
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    return "sampling/createMessage", {"messages": [message], "maxTokens": limit}


ROOTS = ("roots/list", {})
STRING = {"type": "string"}

DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def titled(word):
    return [{"const": f"value{n + 1}", "title": f"{order} {word}"} for n, order in enumerate(("First", "Second", "Third"))]


ENUMS = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": titled("Option")},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
}

SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", **schema({"street": STRING, "city": STRING})}},
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


# --- tools: each takes arguments and `_meta`, and returns a result -------------------------------


def logging_tool(_arguments, _meta):
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        WIRE.log("info", line)
        time.sleep(0.05)
    return text("logged three lines")


def progress_tool(_arguments, meta):
    for step in (0, 50, 100):
        if "progressToken" in meta:
            params = {"progressToken": meta["progressToken"], "progress": step, "total": 100}
            WIRE.notify("notifications/progress", params)
        time.sleep(0.05)
    return text("made progress")


def sampling_tool(arguments, _meta):
    answer = WIRE.ask("sample", *sample(arguments["prompt"]))
    return text(f"LLM response: {answer['content']['text']}")


def asked(name, request, say):
    """A tool that puts one request and says what came back."""

    def tool(_arguments, _meta):
        return text(say(WIRE.ask(name, *request)))

    return tool


def elicitation_tool(arguments, _meta):
    answer = WIRE.ask("who", *form(arguments["message"], {"username": STRING, "email": STRING}))
    return text(f"User response: {json.dumps(answer)}")


def multiple_tool(_arguments, _meta):
    answers = WIRE.ask_all({
        "user_name": form("What is your name?", {"name": STRING}),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    })
    return text(json.dumps(answers))


def rounds_tool(_arguments, _meta):
    name = WIRE.ask("step1", *form("Step 1: What is your name?", {"name": STRING}))
    colour = WIRE.ask("step2", *form("Step 2: What is your favorite color?", {"color": STRING}))
    return text(f"{name['content']['name']} likes {colour['content']['color']}")


def capabilities_tool(_arguments, _meta):
    """Asks for what it may; a refused question is left out."""
    heard = []
    for name, request in (("question", form("Anything?", {"answer": STRING})), ("sample", sample("Anything?"))):
        try:
            heard.append(WIRE.ask(name, *request))
        except Refusal as refusal:
            heard.append(refusal.error)
    return text(json.dumps(heard))


def change_tool(kind):
    def tool(_arguments, _meta):
        WIRE.notify(f"notifications/{kind}/list_changed")
        return text(f"{kind} have changed")

    return tool


def resource(uri, value):
    return {"type": "resource", "resource": {"uri": uri, **value}}


IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
NAMED = schema({"name": STRING})
TOOLS = {
    "test_simple_text": (None, lambda *_: text("This is a simple text response for testing.")),
    "test_image_content": (None, lambda *_: {"content": [IMAGE]}),
    "test_audio_content": (None, lambda *_: {"content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}]}),
    "test_embedded_resource": (None, lambda *_: {"content": [
        resource("test://embedded-resource", {"mimeType": "text/plain", "text": "This is an embedded resource content."})]}),
    "test_multiple_content_types": (None, lambda *_: {"content": [
        {"type": "text", "text": "Multiple content types test:"}, IMAGE,
        resource("test://mixed-content-resource", {"mimeType": "application/json", "text": '{"test":"data","value":123}'})]}),
    "test_tool_with_logging": (None, logging_tool),
    "test_logging_tool": (None, logging_tool),
    "test_tool_with_progress": (None, progress_tool),
    "test_error_handling": (None, lambda *_: {**text("This tool intentionally returns an error for testing"), "isError": True}),
    "test_sampling": (schema({"prompt": STRING}, ["prompt"]), sampling_tool),
    "test_missing_capability": (None, lambda *_: sampling_tool({"prompt": "hello"}, {})),
    "test_elicitation": (schema({"message": STRING}, ["message"]), elicitation_tool),
    "test_streaming_elicitation": (None, asked("who", form("Who are you?", {"name": STRING}), json.dumps)),
    "test_elicitation_sep1034_defaults": (None, asked(
        "defaults", ("elicitation/create", {"message": "Please review", "requestedSchema": schema(DEFAULTS)}),
        lambda answer: f"Elicitation completed: {json.dumps(answer)}")),
    "test_elicitation_sep1330_enums": (None, asked(
        "enums", ("elicitation/create", {"message": "Please choose", "requestedSchema": schema(ENUMS)}),
        lambda answer: f"Elicitation completed: {json.dumps(answer)}")),
    "test_reconnection": (None, lambda *_: (time.sleep(0.1), text("Reconnection test completed successfully"))[1]),
    "json_schema_2020_12_tool": (SCHEMA_2020_12, lambda arguments, _: text(json.dumps(arguments))),
    "test_trigger_tool_change": (None, change_tool("tools")),
    "test_trigger_prompt_change": (None, change_tool("prompts")),
    "test_x_mcp_header": (
        schema({"region": {"type": "string", "x-mcp-header": "Region"}}, ["region"]),
        lambda arguments, _: text(f"region {arguments['region']}")),
    "test_input_required_result_elicitation": (None, asked(
        "user_name", form("What is your name?", {"name": STRING}), lambda answer: f"Hello, {answer['content']['name']}!")),
    "test_input_required_result_sampling": (None, asked(
        "capital_question", sample("What is the capital of France?"), lambda answer: answer["content"]["text"])),
    "test_input_required_result_list_roots": (None, asked("client_roots", ROOTS, json.dumps)),
    "test_input_required_result_request_state": (None, asked(
        "confirm", form("Please confirm", {"ok": {"type": "boolean"}}), lambda _: "state-ok")),
    "test_input_required_result_tampered_state": (None, asked(
        "confirm", form("Please confirm", {"ok": {"type": "boolean"}}), lambda _: "state-ok")),
    "test_input_required_result_multiple_inputs": (None, multiple_tool),
    "test_input_required_result_multi_round": (None, rounds_tool),
    "test_input_required_result_capabilities": (None, capabilities_tool),
}

RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content."},
}


def user(content):
    return {"role": "user", "content": content}


def asking_prompt(_arguments):
    answer = WIRE.ask("user_context", *form("What context should the prompt use?", {"context": STRING}))
    return [user({"type": "text", "text": f"Use this context: {answer['content']['context']}"})]


PROMPTS = {
    "test_simple_prompt": ((), lambda _: [user({"type": "text", "text": "This is a simple prompt for testing."})]),
    "test_prompt_with_arguments": (("arg1", "arg2"), lambda given: [user(
        {"type": "text", "text": f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"})]),
    "test_prompt_with_embedded_resource": (("resourceUri",), lambda given: [
        user(resource(given["resourceUri"], {"mimeType": "text/plain", "text": "Embedded resource content for testing."})),
        user({"type": "text", "text": "Please process the embedded resource above."})]),
    "test_prompt_with_image": ((), lambda _: [user(IMAGE), user({"type": "text", "text": "Please analyze the image above."})]),
    "test_input_required_result_prompt": ((), asking_prompt),
}


# --- methods ---------------------------------------------------------------------------------------


def call_tool(params):
    if params["name"] not in TOOLS:
        raise Refusal(-32602, f"Unknown tool: {params['name']}")
    _, tool = TOOLS[params["name"]]
    return tool(params.get("arguments") or {}, params.get("_meta") or {})


def read_resource(params):
    uri = params["uri"]
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    head, tail = "test://template/", "/data"
    if uri.startswith(head) and uri.endswith(tail):
        name = uri[len(head):-len(tail)]
        value = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": value}]}
    raise Refusal(-32002, "Resource not found", {"uri": uri})


def get_prompt(params):
    if params["name"] not in PROMPTS:
        raise Refusal(-32602, f"Unknown prompt: {params['name']}")
    return {"messages": PROMPTS[params["name"]][1](params.get("arguments") or {})}


def set_level(params):
    WIRE.level = params["level"]
    return {}


def subscribe(params):
    WIRE.subscribed.add(params["uri"])
    return {}


def unsubscribe(params):
    WIRE.subscribed.discard(params["uri"])
    return {}


METHODS = {
    "initialize": lambda params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {
            "tools": {"listChanged": True}, "prompts": {"listChanged": True}, "logging": {}, "completions": {},
            "resources": {"subscribe": True, "listChanged": True},
        },
        "serverInfo": {"name": "conformance-server", "version": "1"},
    },
    "ping": lambda _: {},
    "tools/list": lambda _: {"tools": [
        {"name": name, "description": f"Scenario tool {name}", "inputSchema": wanted or schema()}
        for name, (wanted, _) in TOOLS.items()]},
    "tools/call": call_tool,
    "resources/list": lambda _: {"resources": [
        {"uri": uri, "name": uri.removeprefix("test://"), "mimeType": value["mimeType"]} for uri, value in RESOURCES.items()]},
    "resources/templates/list": lambda _: {"resourceTemplates": [
        {"uriTemplate": "test://template/{id}/data", "name": "template-data", "mimeType": "application/json"}]},
    "resources/read": read_resource,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
    "prompts/list": lambda _: {"prompts": [
        {"name": name, "description": f"Scenario prompt {name}", "arguments": [{"name": one, "required": True} for one in wanted]}
        for name, (wanted, _) in PROMPTS.items()]},
    "prompts/get": get_prompt,
    "completion/complete": lambda params: {"completion": {
        "values": [word for word in ("paris", "park", "party") if word.startswith(params["argument"]["value"])], "hasMore": False}},
    "logging/setLevel": set_level,
}


def answer(message):
    try:
        if message["method"] not in METHODS:
            raise Refusal(-32601, f"Method not found: {message['method']}")
        outcome = {"result": METHODS[message["method"]](message.get("params") or {})}
    except Refusal as refusal:
        outcome = {"error": refusal.error}
    except (KeyError, TypeError) as error:
        outcome = {"error": {"code": -32602, "message": f"invalid parameters: {error!r}"}}
    WIRE.send({"id": message["id"], **outcome})


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            take = WIRE.waiting.pop(message["id"], None)
            if take:
                take(message)
        elif "id" in message:
            threading.Thread(target=answer, args=(message,), daemon=True).start()


if __name__ == "__main__":
    main()
