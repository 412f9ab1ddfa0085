#!/usr/bin/env python3
"""Runs the conformance scenarios against a gateway and says which ones hold.

    conformance.py BASE NODE SUITE OUT

BASE is the environment's address, NODE the interpreter, SUITE the script of the npm package, OUT a folder for what the
package writes. Exits 1 when a scenario fails that has to hold.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

# Revision: how many scored scenarios there are, so that none is lost silently.
REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}
# The tasks extension is one of servers; those behind the gateway have a session of the handshake era, without it.
NOT_REQUIRED = re.compile(r"tasks-")
SERVER = "crates/mcp-gateway/tests/conformance_server.py"
LIMIT_S = 600


def configure(base):
    server = {"transport": "stdio", "command": sys.executable, "args": [os.path.abspath(SERVER)]}
    body = json.dumps({"mcpServers": {"conformance": server}}).encode()
    request = urllib.request.Request(f"{base}/apps", data=body, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        response.read()


def checks_of(folder, scenario):
    """The checks of a scenario; None where it broke off."""
    for name in os.listdir(folder):
        if re.fullmatch(rf"server-{re.escape(scenario)}-\d{{4}}-\d\d-\d\dT[\d-]+Z", name):
            path = os.path.join(folder, name, "checks.json")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    return json.load(file)
    return None


def run(revision, base, node, suite, out):
    folder = os.path.join(out, revision)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    command = [node, suite, "server", "--url", f"{base}/mcp/", "--requirements", revision, "-o", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    with open(os.path.join(folder, "log.txt"), "w", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    scenarios = re.findall(r"^=== Running scenario: (\S+) ===$", done.stdout, re.MULTILINE)
    unscored = set(re.findall(r"^ {2}[✓✗] (\S+) \([^)]*\)$", done.stdout, re.MULTILINE))
    passed, broken = {True: 0, False: 0}, []
    for scenario in scenarios:
        checks = checks_of(folder, scenario)
        failed = [] if checks is None else [one for one in checks if one["status"] == "FAILURE"]
        holds = checks is not None and not failed
        passed[scenario not in unscored] += holds
        if not holds and not NOT_REQUIRED.match(scenario):
            broken.append(scenario)
            print(f"FAIL  {scenario}" + ("" if checks is not None else ": it broke off"))
            for one in failed:
                print(f"      {one['id']}: {' '.join(str(one.get('errorMessage')).split())[:200]}")
    scored = len(scenarios) - len(unscored)
    print(f"conformance {revision}: {passed[True]} of {scored} scored, {passed[False]} of {len(unscored)} not scored")
    if scored != REVISIONS[revision]:
        print(f"FAIL  {scored} scored scenarios were run, there are {REVISIONS[revision]}; see {folder}/log.txt")
        broken.append(revision)
    return not broken


def main():
    base, node, suite, out = sys.argv[1:]
    configure(base)
    results = [run(revision, base, node, suite, out) for revision in REVISIONS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
