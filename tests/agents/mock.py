"""A model on loopback that does as it is told.

`WRITE path text` in the last prompt is answered with one call of a shell tool that appends the
text to the file, and what follows with "done". After `HANG path text` the answer to the tool's
result never comes, so that the prompt can be interrupted in the middle.
"""

import itertools
import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COUNT = itertools.count(1)

ORDER = re.compile(r"\b(WRITE|HANG) ([\w./-]+) ([\w-]+)")


def order_of(text):
    """The last order in a text: the word, and the command line that carries it out."""
    found = ORDER.findall(text or "")
    if not found:
        return None
    word, path, line = found[-1]
    return word, f"echo {line} >> {path}"


def flat(content):
    """The text of a message in any of the formats."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flat(item) for item in content)
    if isinstance(content, dict):
        return "\n".join(flat(content[key]) for key in ("text", "content", "parts") if key in content)
    return ""


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    released = threading.Event()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer_json({"data": [], "models": [], "object": "list"})

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            request = json.loads(body)
        except ValueError:
            return self.answer_json({})
        path = self.path.split("?")[0]
        if log := os.environ.get("OXUNDO_MOCK_LOG"):
            with open(log, "a", encoding="utf-8") as file:
                file.write(json.dumps([path, request]) + "\n")
        for ending, answer in (
            ("/messages/count_tokens", lambda r: self.answer_json({"input_tokens": 10})),
            ("/messages", self.anthropic),
            ("/responses", self.openai_responses),
            ("/chat/completions", self.chat),
            (":streamGenerateContent", self.gemini),
            (":generateContent", self.gemini_whole),
            (":countTokens", lambda r: self.answer_json({"totalTokens": 10})),
        ):
            if path.endswith(ending):
                return answer(request)
        self.answer_json({})

    # The formats

    def anthropic(self, request):
        messages = request.get("messages", [])
        last = messages[-1] if messages else {}
        blocks = last.get("content") if isinstance(last.get("content"), list) else []
        is_result = bool(blocks) and blocks[-1].get("type") == "tool_result"
        users = [m for m in messages if m.get("role") == "user" and not self.has_result(m)]
        order = order_of(flat(users[-1].get("content"))) if users else None
        tools = [tool.get("name") for tool in request.get("tools", [])]
        if is_result:
            self.maybe_hang(order)
            order = None
        call = order is not None and "Bash" in tools
        if call:
            block = {"type": "tool_use", "id": f"toolu_{next(COUNT):02}", "name": "Bash", "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": order[1], "description": "write"})}
        else:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": "done"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{next(COUNT)}", "type": "message", "role": "assistant", "model": "mock", "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}
        stop = "tool_use" if call else "end_turn"
        if not request.get("stream"):
            whole = dict(message, content=[{"type": "text", "text": "done"}], stop_reason="end_turn")
            return self.answer_json(whole)
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        self.stream([(event["type"], event) for event in events])

    @staticmethod
    def has_result(message):
        content = message.get("content")
        return isinstance(content, list) and content[-1:] and content[-1].get("type") == "tool_result"

    def openai_responses(self, request):
        items = request.get("input", [])
        items = items if isinstance(items, list) else [{"role": "user", "content": items}]
        last = items[-1] if items else {}
        users = [item for item in items if item.get("role") == "user"]
        order = order_of(flat(users[-1].get("content"))) if users else None
        if last.get("type", "").endswith("_output"):
            self.maybe_hang(order)
            order = None
        names = [tool.get("name") for tool in request.get("tools", [])]
        if order and "exec_command" in names:
            item = {"type": "function_call", "id": f"fc_{next(COUNT)}", "call_id": f"call_{next(COUNT)}", "name": "exec_command",
                    "arguments": json.dumps({"cmd": order[1]})}
        elif order and "shell" in names:
            item = {"type": "function_call", "id": f"fc_{next(COUNT)}", "call_id": f"call_{next(COUNT)}", "name": "shell",
                    "arguments": json.dumps({"command": ["sh", "-c", order[1]]})}
        else:
            item = {"type": "message", "id": f"m_{next(COUNT)}", "role": "assistant",
                    "content": [{"type": "output_text", "text": "done"}]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                 "input_tokens_details": None, "output_tokens_details": None}
        response = f"r_{next(COUNT)}"
        events = [
            {"type": "response.created", "response": {"id": response}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": response, "output": [item], "usage": usage}},
        ]
        self.stream([(event["type"], event) for event in events])

    def chat(self, request):
        messages = request.get("messages", [])
        users = [m for m in messages if m.get("role") == "user"]
        order = order_of(flat(users[-1].get("content"))) if users else None
        if messages and messages[-1].get("role") == "tool":
            self.maybe_hang(order)
            order = None
        names = [tool.get("function", {}).get("name") for tool in request.get("tools", [])]
        if order and "bash" in names:
            arguments = json.dumps({"command": order[1], "description": "write"})
            delta = {"role": "assistant", "tool_calls": [
                {"index": 0, "id": f"call_{next(COUNT)}", "type": "function", "function": {"name": "bash", "arguments": arguments}}]}
            reason = "tool_calls"
        elif order and not names:
            # An agent without tools takes whole files out of the text.
            path, line = order[1].split(" >> ")[1], order[1].split(" ")[1]
            delta = {"role": "assistant", "content": f"{path}\n```\n{line}\n```\n"}
            reason = "stop"
        else:
            delta, reason = {"role": "assistant", "content": "done"}, "stop"
        base = {"id": f"c_{next(COUNT)}", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not request.get("stream"):
            choice = {"index": 0, "message": delta, "finish_reason": reason}
            return self.answer_json(dict(base, object="chat.completion", choices=[choice], usage=usage))
        self.stream([
            (None, dict(base, choices=[{"index": 0, "delta": delta, "finish_reason": None}])),
            (None, dict(base, choices=[{"index": 0, "delta": {}, "finish_reason": reason}], usage=usage)),
            (None, "[DONE]"),
        ])

    def gemini_parts(self, request):
        contents = request.get("contents", [])
        last = contents[-1] if contents else {}
        parts = last.get("parts", [])
        users = [c for c in contents if c.get("role") == "user"
                 and not any("functionResponse" in part for part in c.get("parts", []))]
        order = order_of(flat(users[-1].get("parts"))) if users else None
        if any("functionResponse" in part for part in parts):
            self.maybe_hang(order)
            order = None
        if order and request.get("tools"):
            return [{"functionCall": {"name": "run_shell_command", "args": {"command": order[1], "description": "write"}}}]
        return [{"text": "done"}]

    def gemini_answer(self, request):
        content = {"role": "model", "parts": self.gemini_parts(request)}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}

    def gemini(self, request):
        self.stream([(None, self.gemini_answer(request))])

    def gemini_whole(self, request):
        self.answer_json(self.gemini_answer(request))

    # The wire

    def maybe_hang(self, order):
        if order and order[0] == "HANG":
            self.released.wait(60)

    def answer_json(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for name, value in events:
                text = value if isinstance(value, str) else json.dumps(value)
                self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
                self.wfile.flush()
        except OSError:
            pass  # It was interrupted.
        self.close_connection = True


def serve():
    """Starts the model; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
