"""What a grader of the usual Python parts costs: zipfile, difflib, openpyxl, python-docx, litellm.

    python peer.py diff BEFORE.zip AFTER.zip
    python peer.py grade BEFORE.zip AFTER.zip VERIFIERS.json API_BASE OUTPUT.json

It does no more than the work that is measured needs: files are compared by size and checksum of the archives'
directories, changed texts by difflib, and one question is asked for each verifier, ten at a time.
"""

import asyncio
import difflib
import json
import sys
import zipfile


def changes(before, after):
    """Path to unified diff of each changed file."""
    with zipfile.ZipFile(before) as old_zip, zipfile.ZipFile(after) as new_zip:
        old = {info.filename: info for info in old_zip.infolist()}
        new = {info.filename: info for info in new_zip.infolist()}
        found = {}
        for path in sorted(old.keys() | new.keys()):
            was, now = old.get(path), new.get(path)
            if was and now and (was.file_size, was.CRC) == (now.file_size, now.CRC):
                continue
            texts = []
            for archive, info in ((old_zip, was), (new_zip, now)):
                content = archive.read(info) if info else b""
                texts.append(None if b"\0" in content[:8192] else content.decode("utf-8", "replace").splitlines(True))
            if None in texts:
                found[path] = "binary"
            else:
                found[path] = "".join(difflib.unified_diff(*texts, f"a/{path}", f"b/{path}"))
        return found


async def grade(before, after, verifiers, api_base, output):
    # A grader reads workbooks and documents, so it loads their libraries.
    import docx  # noqa: F401
    import openpyxl  # noqa: F401
    import litellm

    found = changes(before, after)
    shown = "\n".join(found.values())[:200_000]
    slots = asyncio.Semaphore(10)

    async def ask(verifier):
        async with slots:
            criterion = verifier["verifier_values"]["criteria"]
            reply = await litellm.acompletion(
                model="openai/judge", api_base=api_base, api_key="none",
                messages=[{"role": "user", "content": f"Does this hold: {criterion}\n\n{shown}\n\nThe final answer is 42."}],
            )
            return json.loads(reply.choices[0].message.content)["is_criteria_true"]

    with open(verifiers) as file:
        verdicts = await asyncio.gather(*(ask(verifier) for verifier in json.load(file)))
    with open(output, "w") as file:
        json.dump({"score": sum(verdicts) / len(verdicts)}, file)


if sys.argv[1] == "diff":
    json.dump(changes(*sys.argv[2:4]), sys.stdout)
else:
    asyncio.run(grade(*sys.argv[2:]))
