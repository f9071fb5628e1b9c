"""A model on loopback that does as it is told.

A prompt names a job (`job-7`), and a job is a list of steps that a scenario has written down: tools to
call, and gates at which the model waits until the scenario opens them. What the model has already done
for a job is counted in the conversation that comes with each request: nothing is kept here.
"""

import itertools
import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COUNT = itertools.count(1)
JOB = re.compile(r"\bjob-\d+\b")

# No scenario takes longer than this; a client that is gone holds its request no longer either.
PATIENCE = 120


class Gate:
    """A step: the model says nothing until it is opened."""

    def __init__(self):
        self.reached, self.opened = threading.Event(), threading.Event()

    def open(self):
        self.opened.set()


class Tool:
    """A step: a call of the tool that the agent has for this: `shell`, `edit`, `task` or `background`."""

    def __init__(self, role, *words):
        self.role, self.words = role, words


class Model:
    """What is to be done for each job, and by which tools: a table of (name, arguments) by role."""

    def __init__(self, tools):
        self.tools = tools
        self.jobs = {}
        self.finished = set()
        self.asked = set()

    def job(self, name, *steps):
        self.jobs[name] = list(steps)

    def close(self):
        for steps in self.jobs.values():
            for step in steps:
                if isinstance(step, Gate):
                    step.open()

    def answer(self, conversation, has_tools):
        """What is said next: the text, or (name, arguments) of a tool's call."""
        done, job = 0, None
        for kind, text in reversed(conversation):
            if kind == "result":
                done += 1
            elif kind == "user" and (named := [name for name in JOB.findall(text) if name in self.jobs]):
                job = named[-1]
                break
        if job is None:
            return "done"
        self.asked.add(job)
        # A text is all that a model without tools gives; and what a conversation is called is asked without them.
        if not has_tools and "text" not in self.tools:
            return "done"
        said = []
        for step in self.jobs[job]:
            if isinstance(step, Gate):
                if done == 0:
                    step.reached.set()
                    step.opened.wait(PATIENCE)
            elif "text" in self.tools:
                said.append(self.tools["text"](*step.words))
            elif done == 0:
                name, arguments = self.tools[step.role]
                return name, arguments(*step.words)
            else:
                done -= 1
        self.finished.add(job)
        return "\n".join(said) or "done"


def flat(content):
    """The text of a message in any of the formats."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flat(item) for item in content)
    if isinstance(content, dict):
        return "\n".join(flat(content[key]) for key in ("text", "content", "parts") if key in content)
    return ""


# What a request says, as (kind, text), and how an answer is told in the same format.

def anthropic_says(request):
    for message in request.get("messages", []):
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if block.get("type") == "tool_result":
                yield "result", ""
            else:
                yield message.get("role"), flat(block)


def anthropic(request, said):
    usage = {"input_tokens": 1, "output_tokens": 1}
    if isinstance(said, str):
        whole, stop = {"type": "text", "text": said}, "end_turn"
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": said}
    else:
        block = {"type": "tool_use", "id": f"toolu_{next(COUNT):02}", "name": said[0], "input": {}}
        whole, stop = dict(block, input=said[1]), "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps(said[1])}
    message = {"id": f"msg_{next(COUNT)}", "type": "message", "role": "assistant", "model": "mock", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    if not request.get("stream"):
        return dict(message, content=[whole], stop_reason=stop)
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


def responses_says(request):
    items = request.get("input", [])
    for item in items if isinstance(items, list) else [{"role": "user", "content": items}]:
        if item.get("type", "").endswith("_output"):
            yield "result", ""
        else:
            yield item.get("role"), flat(item.get("content"))


def responses(request, said):
    if isinstance(said, str):
        item = {"type": "message", "id": f"m_{next(COUNT)}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": said, "annotations": []}]}
    else:
        # A tool of a namespace is written `namespace/name` in the table.
        *namespace, name = said[0].split("/")
        item = {"type": "function_call", "id": f"fc_{next(COUNT)}", "call_id": f"call_{next(COUNT)}", "name": name,
                "status": "completed", "arguments": json.dumps(said[1])}
        if namespace:
            item["namespace"] = namespace[0]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
             "input_tokens_details": None, "output_tokens_details": None}
    response = {"id": f"r_{next(COUNT)}", "object": "response", "model": "mock", "output": [item], "usage": usage}
    if not request.get("stream"):
        return response
    events = [
        {"type": "response.created", "response": {"id": response["id"]}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return [(event["type"], event) for event in events]


def chat_says(request):
    for message in request.get("messages", []):
        yield ("result", "") if message.get("role") == "tool" else (message.get("role"), flat(message.get("content")))


def chat(request, said):
    if isinstance(said, str):
        delta, reason = {"role": "assistant", "content": said}, "stop"
    else:
        function = {"name": said[0], "arguments": json.dumps(said[1])}
        delta = {"role": "assistant", "tool_calls": [
            {"index": 0, "id": f"call_{next(COUNT)}", "type": "function", "function": function}]}
        reason = "tool_calls"
    base = {"id": f"c_{next(COUNT)}", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not request.get("stream"):
        choice = {"index": 0, "message": delta, "finish_reason": reason}
        return dict(base, object="chat.completion", choices=[choice], usage=usage)
    return [
        (None, dict(base, choices=[{"index": 0, "delta": delta, "finish_reason": None}])),
        (None, dict(base, choices=[{"index": 0, "delta": {}, "finish_reason": reason}], usage=usage)),
        (None, "[DONE]"),
    ]


def gemini_says(request):
    for message in request.get("contents", []):
        for part in message.get("parts", []):
            yield ("result", "") if "functionResponse" in part else (message.get("role", "user"), flat(part))


def gemini(_request, said):
    part = {"text": said} if isinstance(said, str) else {"functionCall": {"name": said[0], "args": said[1]}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}


FORMATS = (
    ("/messages", anthropic_says, anthropic),
    ("/responses", responses_says, responses),
    ("/chat/completions", chat_says, chat),
    (":streamGenerateContent", gemini_says, lambda request, said: [(None, gemini(request, said))]),
    (":generateContent", gemini_says, gemini),
)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

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
        for ending, says, tell in FORMATS:
            if path.endswith(ending):
                said = self.server.model.answer(list(says(request)), bool(request.get("tools")))
                told = tell(request, said)
                return self.stream(told) if isinstance(told, list) else self.answer_json(told)
        # What counts tokens, and whatever else is asked.
        self.answer_json({"input_tokens": 10, "totalTokens": 10})

    def answer_json(self, value):
        data = json.dumps(value).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass  # It was interrupted.

    def stream(self, events):
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for name, value in events:
                text = value if isinstance(value, str) else json.dumps(value)
                self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode())
                self.wfile.flush()
        except OSError:
            pass  # It was interrupted.
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # A client that was interrupted.


def serve(tools):
    """Starts a model with these tools; gives it and its address."""
    server = Server(("127.0.0.1", 0), Handler)
    server.model = Model(tools)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.model, f"http://127.0.0.1:{server.server_port}"
