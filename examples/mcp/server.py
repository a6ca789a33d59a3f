"""A small MCP server (JSON-RPC, a message a line, over standard input and output) with one tool: it counts the words of a file."""

import json
import sys

TOOL = {"name": "count_words", "description": "Counts the words of a file of the project",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}


def call(arguments):
    try:
        with open(arguments["path"], encoding="utf-8") as file:
            return {"content": [{"type": "text", "text": str(len(file.read().split()))}], "isError": False}
    except OSError as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


def result(message):
    method = message["method"]
    if method == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "words", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return call(message["params"]["arguments"])
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:  # a notification has none and wants no answer
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result(request)}), flush=True)
