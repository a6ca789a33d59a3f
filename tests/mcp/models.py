"""Models that follow a script, on loopback: a client asks one for its next step, as it asks a real one, and tells it what its tools
answered. Three wires: that of Anthropic (Claude Code, OpenCode), of OpenAI's responses (Codex), and of Gemini."""

import http.server
import json
import threading


class Model:
    """A server that gives the steps of a script, one to each request that offers tools, and then says "done".

    A step is the name of a tool, as the client offers it, and its arguments. `requests` has the body of each such request."""

    def __init__(self, steps):
        self.steps, self.requests, self.lock = list(steps), [], threading.Lock()
        self.asked = threading.Semaphore(0)  # released by each request that offers tools
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.answer("application/json", "{}")

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    asked = json.loads(body)
                except ValueError:
                    asked = {}
                self.answer(*model.reply(self.path, asked))

            def answer(self, kind, text):
                data = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def next_step(self, asked):
        with self.lock:
            self.requests.append(asked)
            step = self.steps.pop(0) if self.steps else None
        self.asked.release()
        return step

    def offered(self):
        """The names of the tools that the first request offered."""
        return self.names(self.requests[0])

    def told(self, number):
        """What the client told the model after its step of this number, as JSON."""
        return json.dumps(self.last(self.requests[number]), ensure_ascii=False)


def events(*pairs):
    return "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n" for kind, data in pairs)


class Anthropic(Model):
    def names(self, asked):
        return [tool["name"] for tool in asked.get("tools", [])]

    def last(self, asked):
        return asked["messages"][-1]

    def reply(self, path, asked):
        if not path.split("?")[0].endswith("/messages"):
            return "application/json", json.dumps({"input_tokens": 1, "data": []})
        step = self.next_step(asked) if asked.get("tools") else None
        block = {"type": "text", "text": "done"}
        if step:
            block = {"type": "tool_use", "id": f"toolu_{len(self.requests):010}", "name": step[0], "input": step[1]}
        reason, usage = "tool_use" if step else "end_turn", {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{len(self.requests)}", "type": "message", "role": "assistant", "model": asked.get("model", "m"),
                   "stop_sequence": None, "usage": usage}
        if not asked.get("stream"):
            return "application/json", json.dumps({**message, "content": [block], "stop_reason": reason})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step[1])} if step else {"type": "text_delta", "text": "done"}
        return "text/event-stream", events(
            ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
            ("content_block_start", {"index": 0, "content_block": {**block, "input": {}} if step else {**block, "text": ""}}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}),
            ("message_stop", {}))


class Responses(Model):
    """A step may name a namespace before the tool: "mcp__sbx/run_code"."""

    def names(self, asked):
        found = []
        for tool in asked.get("tools", []):
            below = tool.get("tools") or [tool]
            found += [("" if each is tool else tool["name"] + "/") + (each.get("name") or each["type"]) for each in below]
        return found

    def last(self, asked):
        return asked["input"][-1]

    def reply(self, path, asked):
        if not path.endswith("/responses"):
            return "application/json", "{}"
        step = self.next_step(asked) if asked.get("tools") else None
        number = len(self.requests)
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
        if step:
            *space, name = step[0].split("/")
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(step[1]),
                    **({"namespace": space[0]} if space else {})}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        return "text/event-stream", events(
            ("response.created", {"response": {"id": f"resp_{number}"}}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": {"id": f"resp_{number}", "usage": usage}}))


class Gemini(Model):
    def names(self, asked):
        return [each["name"] for tool in asked.get("tools", []) for each in tool.get("functionDeclarations", [])]

    def last(self, asked):
        return asked["contents"][-1]

    def reply(self, path, asked):
        if "countTokens" in path:
            return "application/json", '{"totalTokens": 1}'
        step = self.next_step(asked) if self.names(asked) else None
        # A request without tools may want JSON: which model is to be asked, and who speaks next.
        wants_json = asked.get("generationConfig", {}).get("responseMimeType")
        said = '{"reasoning": "", "next_speaker": "user", "model_choice": "flash"}' if wants_json else "done"
        part = {"functionCall": {"name": step[0], "args": step[1]}} if step else {"text": said}
        answer = json.dumps({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                             "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}})
        return ("text/event-stream", f"data: {answer}\n\n") if "alt=sse" in path else ("application/json", answer)
