"""A small MCP server for tests, good or bad as its first argument says.

    server.py MODE [--journal FILE] [--http PORT_FILE] [--once FILE]

It speaks newline JSON-RPC on its standard streams, or streamable HTTP on a free port of loopback
that it writes to PORT_FILE. Every message that it gets is a line of FILE. With --once, only the
first start is good; the file says that there was one.

Modes: good, never (no answer to initialize), nonsense (words that are no messages), refuses,
endless (a line without end), flood (lines without end), dies (at once), schema (a tool without a
schema, one with a schema that takes for ever, and one with a pattern that looks around), cursor (the same page for ever), many (too many tools), other (other tools when started
again, with --once), ttl (says that its list stays good), forgets (400 for a session that it does
not know, where 404 is right), moved (a redirect), hangs (no answer to a ping or a call over HTTP),
breaks and ends (streams of events that are broken off, or ended, as soon as they are begun), serial
(over HTTP one request after the other, with nothing said before a request is done).
"""

import base64
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = sys.argv[1]
OPTIONS = dict(zip(sys.argv[2::2], sys.argv[3::2]))
JOURNAL = OPTIONS.get("--journal")
LOCK = threading.Lock()
TURN = threading.Lock()
CANCELLED = {}
REPLIES = {}


def note(message):
    if JOURNAL:
        with LOCK, open(JOURNAL, "a") as journal:
            journal.write(json.dumps(message) + "\n")


def tool(name, properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}


def is_again():
    once = OPTIONS.get("--once")
    if not once:
        return False
    again = os.path.exists(once)
    open(once, "a").close()
    return again


AGAIN = is_again()

TOOLS = [
    tool("echo", {"text": {"type": "string"}}),
    tool("slow", {"seconds": {"type": "number"}, "steps": {"type": "integer"}}),
    tool("fail", {"text": {"type": "string"}}),
    tool("structured"),
    tool("picture"),
    tool("big", {"bytes": {"type": "integer"}, "objects": {"type": "integer"}}),
    tool("env", {"name": {"type": "string"}}),
    tool("ask"),
    tool("spam", {"count": {"type": "integer"}}),
    tool("mute"),
    tool("die"),
    tool("pour"),
    tool("enrich"),
    tool("status", {"code": {"type": "integer"}, "kind": {"type": "string"}, "body": {"type": "string"}}),
    tool("cut"),
    tool("stop"),
]


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def doubling():
    """A tool whose input takes 2^30 steps to check."""
    defs = {"d0": {"type": "object"}}
    for at in range(1, 31):
        defs[f"d{at}"] = {"allOf": [{"$ref": f"#/$defs/d{at - 1}"}] * 2}
    return {"name": "doubling", "inputSchema": {"type": "object", "$defs": defs, "$ref": "#/$defs/d30"}}


def mail():
    """A tool whose input has a pattern as generators of schemas write it."""
    to = {"type": "string", "pattern": "^(?!\\.)(?!.*\\.\\.)([a-z.]*)@[a-z.]+$"}
    return {"name": "mail", "inputSchema": {"type": "object", "properties": {"to": to}, "required": ["to"]}}


def tools(params):
    if MODE == "cursor":
        return {"tools": TOOLS[:1], "nextCursor": "again"}
    if MODE == "many":
        page = int(params.get("cursor") or 0)
        some = [tool(f"t{page}_{n}") for n in range(100)]
        return {"tools": some, "nextCursor": str(page + 1)} if page < 4 else {"tools": some}
    if MODE == "schema":
        return {"tools": TOOLS[:1] + [{"name": "broken", "inputSchema": {"type": "nothing"}}, doubling(), mail()]}
    if MODE == "ttl":
        return {"tools": TOOLS, "ttlMs": 3_600_000, "cacheScope": "public"}
    if MODE == "other" and AGAIN:
        return {"tools": TOOLS[1:] + [tool("new")]}
    # Two pages, so that the second is asked for.
    if not params.get("cursor"):
        return {"tools": TOOLS[:4], "nextCursor": "rest"}
    return {"tools": TOOLS[4:]}


def envelope(asked):
    # A service that repeats its own key, if it has one.
    token = {"token": os.environ["SMALL_API_TOKEN"]} if "SMALL_API_TOKEN" in os.environ else {}
    return {
        "enricher_id": asked.get("enricher_id"),
        "domain_type": asked.get("domain_type"),
        "principal": asked.get("principal"),
        "version": asked.get("version"),
        "status": "ok",
        "payload": {"offers": [{"offer_id": "o-1", "title": "One"}], **token},
    }


def call(key, params, tell, ask):
    """The result of one call; None where there never is one."""
    name, given = params["name"], params.get("arguments") or {}
    token = (params.get("_meta") or {}).get("progressToken")

    def progress(at, total=None):
        step = {"progressToken": token, "progress": at}
        if total is not None:
            step["total"] = total
        tell("notifications/progress", step)

    if name == "echo":
        return text(given.get("text", ""))
    if name == "slow":
        seconds, steps = given.get("seconds", 30), given.get("steps", 10)
        for step in range(steps):
            if CANCELLED.setdefault(key, threading.Event()).wait(seconds / steps):
                return None
            progress(step + 1, steps)
        return text("slowly done")
    if name == "fail":
        return text(given.get("text", "it does not work"), isError=True)
    if name == "structured":
        return text("20 degrees", structuredContent={"degrees": 20})
    if name == "picture":
        data = base64.b64encode(b"0" * 300).decode()
        return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}
    if name == "big" and "objects" in given:
        return {"content": [], "structuredContent": {"a": [{"": 0}] * given["objects"]}}
    if name == "big":
        return text("x" * given.get("bytes", 2_000_000))
    if name == "env":
        return text(os.environ.get(given.get("name", ""), "not there"))
    if name == "ask":
        said = {"role": "user", "content": {"type": "text", "text": "hi"}}
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        answers = [
            ask("sampling/createMessage", {"messages": [said], "maxTokens": 10}),
            ask("elicitation/create", {"message": "Who?", "requestedSchema": form}),
            ask("roots/list"),
            ask("ping"),
        ]
        return text(json.dumps(answers))
    if name == "spam":
        for at in range(given.get("count", 10_000)):
            progress(at + 1)
        return text("spammed")
    if name in ("mute", "cut", "status"):
        return None
    if name == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        return None
    if name == "die":
        os._exit(3)
    if name == "pour":
        while True:
            tell("notifications/message", {"level": "info", "data": "x" * 1_000_000})
    if name == "enrich":
        return text("an envelope", structuredContent=envelope(given))
    raise KeyError(name)


def answer(message, session, tell, ask):
    """The answer to a request; None where there is none."""
    method, params = message["method"], message.get("params") or {}

    def result(value):
        return {"jsonrpc": "2.0", "id": message["id"], "result": value}

    def error(code, words):
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": words}}

    if method == "initialize":
        if MODE == "never":
            return None
        if MODE == "refuses":
            return error(-32000, "the licence has run out")
        return result(
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "small", "version": "1"},
            }
        )
    if method == "ping":
        return result({})
    if method == "tools/list":
        return result(tools(params))
    if method == "tools/call":
        try:
            given = call((session, message["id"]), params, tell, ask)
        except KeyError:
            return error(-32602, "there is no such tool")
        return None if given is None else result(given)
    return error(-32601, "no such method")


def take(message, session):
    """Writes a message down; whether it is a request."""
    note(message)
    if message.get("method") == "notifications/cancelled":
        key = (session, message["params"].get("requestId"))
        CANCELLED.setdefault(key, threading.Event()).set()
    if "method" not in message and "id" in message:
        waiting = REPLIES.get(message["id"])
        if waiting is not None:
            waiting.append(message)
    return "method" in message and "id" in message


def stdio():
    out = sys.stdout
    lock = threading.Lock()

    def write(message):
        with lock:
            out.write(json.dumps(message) + "\n")
            out.flush()

    def tell(method, params):
        write({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(method, params=None):
        key = f"ask-{method}"
        REPLIES[key] = []
        write({"jsonrpc": "2.0", "id": key, "method": method, "params": params or {}})
        for _ in range(500):
            if REPLIES[key]:
                reply = REPLIES[key][0]
                return reply.get("error", {}).get("code", "answered")
            time.sleep(0.02)
        return "no answer"

    def work(message):
        given = answer(message, "stdio", tell, ask)
        if given is not None:
            write(given)

    if MODE == "dies" or (AGAIN and MODE != "other"):
        sys.stderr.write("cannot open /secret/place\n")
        sys.exit(7)
    if MODE == "endless":
        while True:
            out.write("x" * 1_000_000)
    if MODE == "flood":
        while True:
            out.write('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"')
            out.write("x" * 1_000_000 + '"}}\n')
    if MODE == "nonsense":
        out.write("Server is listening!\nReady.\n")
        out.flush()
    for line in sys.stdin:
        if MODE == "nonsense":
            out.write("What do you want?\n")
            out.flush()
            continue
        message = json.loads(line)
        if take(message, "stdio"):
            threading.Thread(target=work, args=(message,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def give(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        note({"http": "GET"})
        if MODE not in ("breaks", "ends"):
            self.give(405)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if MODE == "breaks":
            self.send_header("Content-Length", "1000")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(b"retry: 0\n\n")

    def hang(self):
        """Until the other side goes."""
        self.close_connection = True
        try:
            self.connection.recv(1)
        except OSError:
            pass
        note({"http": "gone"})

    def do_DELETE(self):
        note({"http": "DELETE", "session": self.headers.get("Mcp-Session-Id")})
        self.give(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note({"http": "POST", "headers": {k.lower(): v for k, v in self.headers.items()}})
        session = self.headers.get("Mcp-Session-Id")
        if MODE == "dies":
            self.give(503, b"no", "text/plain")
            return
        if MODE == "moved":
            self.give(307, Location="/mcp/")
            return
        if MODE == "nonsense":
            self.give(200, b"<html>hello</html>", "text/html")
            return
        if not take(message, session):
            self.give(202)
            return
        if message["method"] == "initialize":
            body = json.dumps(answer(message, session, None, None)).encode()
            self.give(200, body, Mcp_Session_Id=f"s-{os.getpid()}")
            return
        if session != f"s-{os.getpid()}":
            if MODE == "forgets":
                refused = {"code": -32000, "message": "no valid session"}
                body = {"jsonrpc": "2.0", "id": message["id"], "error": refused}
                self.give(400, json.dumps(body).encode())
            else:
                self.give(404)
            return
        params = message.get("params") or {}
        if MODE == "hangs" and message["method"] in ("ping", "tools/call"):
            self.hang()
            return
        if MODE == "serial":
            try:
                with TURN:
                    given = answer(message, session, lambda *_: None, lambda *_: "nobody")
                    self.give(200, json.dumps(given).encode())
            except OSError:
                self.close_connection = True
            return
        if params.get("name") == "status":
            given = params.get("arguments") or {}
            body = given.get("body", "").replace("ID", json.dumps(message["id"]))
            self.give(given["code"], body.encode(), given.get("kind", "text/plain"))
            return
        if message["method"] != "tools/call":
            self.give(200, json.dumps(answer(message, session, None, None)).encode())
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        lock = threading.Lock()

        def event(value):
            with lock:
                self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
                self.wfile.flush()

        def tell(method, params):
            event({"jsonrpc": "2.0", "method": method, "params": params})

        try:
            given = answer(message, session, tell, lambda *_: "nobody")
            if given is not None:
                event(given)
            elif message["params"]["name"] == "mute":
                time.sleep(60)
        except OSError:
            pass


def http(port_file):
    server = ThreadingHTTPServer(("127.0.0.1", int(OPTIONS.get("--port", 0))), Handler)
    with open(port_file + ".new", "w") as file:
        file.write(str(server.server_port))
    os.rename(port_file + ".new", port_file)
    server.serve_forever()


if "--http" in OPTIONS:
    http(OPTIONS["--http"])
else:
    stdio()
