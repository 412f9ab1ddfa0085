"""Calls the server through the Python MCP SDK: python_client.py PROGRAM ROOT."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program: str, root: str) -> None:
    parameters = StdioServerParameters(command=program, args=["--root", root])
    async with stdio_client(parameters) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = {tool.name for tool in (await session.list_tools()).tools}
            assert {"list_files", "read_text_file", "read_image_file"} <= tools, tools
            # The SDK checks structured content against the output schema.
            text = await session.call_tool("read_text_file", {"file_path": "/a.txt"})
            assert text.content[0].text == "hello", text
            picture = await session.call_tool("read_image_file", {"file_path": "/p.png"})
            assert picture.content[0].type == "image", picture
            refused = await session.call_tool("read_text_file", {"file_path": "/../a.txt"})
            failed = getattr(refused, "is_error", None) or getattr(refused, "isError", None)
            assert failed, refused


asyncio.run(main(*sys.argv[1:]))
