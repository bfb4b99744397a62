"""A gateway in a process of its own that answers by the first part of the path, and reports every request.

`/401/v1/…` answers 401, `/ok/v1/…` (or no first part) streams two tokens. Prints its port, then one JSON
object per request: path, headers (lower case) and body.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()

CHAT = (
    '{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]}',
    '{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" you"}}]}',
    '{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    '{"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}',
    "[DONE]",
)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, "text/plain", b"hello")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {k.lower(): v for k, v in self.headers.items()}
        with lock:
            report = {"path": self.path, "headers": headers, "body": json.loads(body), "at": time.monotonic()}
            print(json.dumps(report), flush=True)
        how = self.path.split("/")[1]
        if how.isdigit():
            self.answer(int(how), "application/json", b'{"error":{"message":"no luck","type":"t"}}')
        elif how == "login":
            self.answer(200, "application/json", b'{"token":"t-1"}')
        elif how == "html":
            self.answer(200, "text/html", b"<html>hello</html>")
        elif how == "redirect":
            self.answer(308, "text/plain", b"", Location="https://elsewhere.example/v1")
        elif how == "close":
            self.close_connection = True
        elif how == "garbage":
            self.wfile.write(b"SSH-2.0-OpenSSH_9.9\r\n")
            self.close_connection = True
        else:
            self.stream(how == "sim", float(how[4:]) if how.startswith("slow") else 0.0)

    def answer(self, status, kind, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, simulated, pause_s):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        if simulated:
            self.send_header("X-Harness-Sim", "generic")
        self.end_headers()
        try:
            for data in CHAT:
                piece = f"data: {data}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                time.sleep(pause_s)
            self.wfile.write(b"0\r\n\r\n")
        except ConnectionError:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
