#!/usr/bin/env python3
"""The same calls by LiteLLM's SDK: REQUEST.json CALLS AT_ONCE, with OPENAI_BASE_URL and OPENAI_API_KEY."""
import asyncio
import json
import sys

import litellm


async def main(file, calls, at_once):
    with open(file) as opened:
        request = json.load(opened)
    places = asyncio.Semaphore(at_once)

    async def call():
        async with places:
            answer = await litellm.acompletion(
                model="openai/gpt-4.1", messages=request["messages"], tools=request["tools"], timeout=60
            )
            assert answer.choices[0].message.content

    if at_once == 1:
        for _ in range(calls):
            await call()
    else:
        await asyncio.gather(*(call() for _ in range(calls)))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
