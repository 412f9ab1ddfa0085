#!/usr/bin/env python3
"""A plain agent loop on litellm and fastmcp, with the runner's flags: what an agent in Python costs.

    pip install litellm fastmcp
    bench_runner.py --runner-cmd "python benches/peers/python_loop.py" --runner-env LITELLM_LOCAL_MODEL_COST_MAP=True …

One session for the whole run, one model call and its tool calls per step, a trajectory at the end. Nothing else:
no events, no budgets, no retries of its own.
"""
import argparse
import asyncio
import json
import time

import litellm
from fastmcp import Client


def load(path, default=None):
    if not path:
        return default
    with open(path) as file:
        return json.load(file)


async def run(flags):
    messages = load(flags.initial_messages)
    settings = load(flags.agent_config)["agent_config_values"]
    extra = load(flags.orchestrator_extra_args, {})
    started = time.time()
    status = "failed"
    async with Client(flags.mcp_gateway_url) as client:
        tools = [
            {"type": "function",
             "function": {"name": tool.name, "description": tool.description or "", "parameters": tool.inputSchema}}
            for tool in await client.list_tools()
        ]
        for _ in range(settings.get("max_steps", 100)):
            reply = await litellm.acompletion(
                model=flags.orchestrator_model, messages=messages, tools=tools, **extra)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                status = "completed"
                break
            for call in message.tool_calls:
                result = await client.call_tool(
                    call.function.name, json.loads(call.function.arguments or "{}"), raise_on_error=False)
                text = "\n".join(block.text for block in result.content if block.type == "text")
                messages.append({"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": text})
    with open(flags.output, "w") as file:
        json.dump({"messages": messages, "status": status, "time_elapsed": time.time() - started}, file, indent=2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("trajectory-id", "initial-messages", "mcp-gateway-url", "agent-config", "orchestrator-model",
                 "orchestrator-extra-args", "output"):
        parser.add_argument(f"--{name}")
    asyncio.run(run(parser.parse_args()))
