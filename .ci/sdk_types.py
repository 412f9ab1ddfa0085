"""Checks recorded requests against the types of the providers' own SDKs; unknown fields are errors.

The records are what stubs write into a folder (see `ARCHIPELAGO_STUB_RECORDS` in crates/testkit).
"""

import gzip
import importlib
import json
import pathlib
import pkgutil
import re
import sys
import typing
from collections import Counter

# Lists that the SDKs declare as `Iterable` would be checked when they are read, which nobody does here.
typing.Iterable = typing.List

import anthropic._types
import botocore
import openai._types
import typing_extensions
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from pydantic import BaseModel, TypeAdapter

for sdk in (anthropic, openai):
    sdk._types.SequenceNotStr = typing.List


def close(package):
    """Makes unknown fields errors in all typed dictionaries of `package`."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, package + "."):
        for value in vars(importlib.import_module(module.name)).values():
            if typing_extensions.is_typeddict(value):
                value.__pydantic_config__ = {"extra": "forbid", "arbitrary_types_allowed": True}


close("anthropic.types")
close("openai.types")

from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming as Message,
    MessageCreateParamsStreaming as MessageStream,
)
from google.genai import types as google
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming as Chat,
    CompletionCreateParamsStreaming as ChatStream,
)
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming as Response,
    ResponseCreateParamsStreaming as ResponseStream,
)


def by_type(plain, stream):
    plain, stream = TypeAdapter(plain), TypeAdapter(stream)

    def check(body):
        (stream if body.get("stream") else plain).validate_python(body)

    return check


def converse_model():
    folder = pathlib.Path(botocore.__file__).parent / "data" / "bedrock-runtime"
    path = next(folder.glob("*/service-2.json*"))
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return ServiceModel(json.loads(text)).operation_model("Converse").input_shape


CONVERSE = converse_model()


def converse(body):
    report = ParamValidator().validate({"modelId": "m", **body}, CONVERSE)
    if report.has_errors():
        raise ValueError(report.generate_report())


GOOGLE = {
    "contents": list[google.Content],
    "systemInstruction": google.Content,
    "tools": list[google.Tool],
    "toolConfig": google.ToolConfig,
    "generationConfig": google.GenerationConfig,
    "safetySettings": list[google.SafetySetting],
    "cachedContent": str,
    "labels": dict[str, str],
}


def generate_content(body):
    for name, value in body.items():
        if name not in GOOGLE:
            raise ValueError(f"{name}: no such field")
        TypeAdapter(GOOGLE[name]).validate_python(value)


def at_google(body):
    """A message to Claude at Google: the model is in the address, the version in the body."""
    message = dict(body)
    if not message.pop("anthropic_version", None):
        raise ValueError("anthropic_version is missing")
    messages({"model": "m", **message})


by_newest = by_type(Message, MessageStream)


def messages(body):
    by_newest({key: value for key, value in body.items() if key not in OLDER})


CHECKS = [
    ("OpenAI chat completions", r"/chat/completions$", by_type(Chat, ChatStream)),
    ("OpenAI responses", r"/responses$", by_type(Response, ResponseStream)),
    ("Anthropic messages", r"/v1/messages$", messages),
    ("Anthropic messages at Google", r":(streamR|r)awPredict$", at_google),
    ("Bedrock Converse", r"/converse(-stream)?$", converse),
    ("Google generateContent", r":(streamG|g)enerateContent$", generate_content),
]


# Fields that tests send because the caller asks for them by name, and parameters that only Claude models
# before those of the newest SDK take.
WANTED = {"vendor_flag", "vendor_options"}
OLDER = {"temperature", "top_k", "top_p"}


def main(folder):
    counts, failures = Counter(), []
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        record = json.loads(path.read_text())
        found = [check for check in CHECKS if re.search(check[1], record["path"])]
        if not found:
            failures.append(f"{record['path']}: no check for this address")
            continue
        name, _, check = found[0]
        if name == "OpenAI chat completions" and "/" in record["body"]["model"]:
            # For a proxy, which takes fields of all providers.
            continue
        counts[name] += 1
        body = {key: value for key, value in record["body"].items() if key not in WANTED}
        try:
            check(body)
        except Exception as error:
            failures.append(f"{name}: {str(error)[:1500]}\n{json.dumps(record['body'])[:2000]}\n")
    for name, count in counts.items():
        print(f"{count:6} requests: {name}")
    needed = [
        "OpenAI chat completions",
        "OpenAI responses",
        "Anthropic messages",
        "Bedrock Converse",
        "Google generateContent",
    ]
    failures += [f"{name}: nothing was recorded" for name in needed if not counts[name]]
    for failure in failures[:20]:
        print(failure, file=sys.stderr)
    if failures:
        sys.exit(f"{len(failures)} requests do not fit the SDKs' types")


main(sys.argv[1])
