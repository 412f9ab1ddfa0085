#!/usr/bin/env bash
# The commands of docs/by-hand.md, one after the other. The programs are looked for on PATH.
# usage: by-hand.sh TASK_FOLDER WORK_FOLDER
set -euo pipefail
task=$(realpath "$1")
mkdir -p "$2"
cd "$2"
cp -r "$task"/. .

# The environment, on a free port; it says where.
archipelago-env --host 127.0.0.1 --port 0 --filesystem-root world/filesystem --apps-data-root world/apps_data \
    2> environment.log &
environment=$!
trap 'kill $environment; wait $environment || true' EXIT
until url=$(grep -o 'listening on http://[^ ]*' environment.log); do
    kill -0 $environment
    sleep 0.05
done
url=${url#listening on }
curl -sf "$url/health"

# The world, relative to the subsystem: without `filesystem/` in front.
unzip -q original_snapshot.zip -d unpacked
tar -C unpacked/filesystem -czf world.tar.gz .
curl -sf -F archive=@world.tar.gz "$url/data/populate?subsystem=filesystem"

# The MCP servers; the environment's root is not `/filesystem` here.
sed "s|\"/filesystem\"|\"$PWD/world/filesystem\"|" mcp_config.json > mcp_config.here.json
curl -sf -H 'Content-Type: application/json' --data @mcp_config.here.json "$url/apps"

# The agent.
archipelago-runner --trajectory-id t1 --mcp-gateway-url "$url/mcp/" --initial-messages initial_messages.json \
    --agent-config agent_config.json --orchestrator-model scripted/agent_script.json --output trajectory.json

# The state that it left, and its grades.
curl -sf -X POST "$url/data/snapshot" -o final_snapshot.tar.gz
archipelago-grader --grading-run-id gr1 --trajectory-id t1 --trajectory trajectory.json \
    --initial-snapshot original_snapshot.zip --final-snapshot final_snapshot.tar.gz \
    --grading-settings grading_settings.json --verifiers verifiers.json --eval-configs eval_configs.json \
    --scoring-config scoring_config.json --output grades.json
