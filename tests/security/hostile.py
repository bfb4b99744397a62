"""A gateway that means harm: it repeats keys, steers terminals, floods. Prints its port, then each request.

The first part of the path says how: `/echo/…` a 401 that repeats all headers, `/echo-stream/…` the same as an
error inside a stream, `/steer/…` and `/steer-stream/…` escapes in every text, `/redirect/…` to another place,
`/huge-headers/…`, `/huge-body/…`, `/huge-comment/…`.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STEER = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202e"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        print(self.path, json.dumps(dict(self.headers)), flush=True)
        how = self.path.split("/")[1]
        said = " ".join(self.headers.values())
        try:
            if how == "echo":
                self.refuse(f"no such key: {said}", code=self.headers["x-api-key"] or "none")
            elif how == "echo-stream":
                self.stream(said, said)
            elif how == "steer":
                self.refuse(STEER + "x" * 5000, code=STEER)
            elif how == "steer-stream":
                self.stream(STEER, STEER)
            elif how == "redirect":
                self.send_response(307)
                self.send_header(
                    "Location", f"http://127.0.0.1:{server.server_port}/elsewhere/v1/chat/completions"
                )
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif how == "huge-headers":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-More: " + b"y" * 1_000_000 + b"\r\n\r\n")
            elif how == "huge-body":
                self.send_response(500)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(10**12))
                self.end_headers()
                while True:
                    self.wfile.write(b'{"error":"' + b"z" * 1_000_000)
            elif how == "huge-comment":
                self.begin()
                while True:
                    self.wfile.write(b"100000\r\n" + b":" * 0x100000 + b"\r\n")
        except OSError:
            pass
        self.close_connection = True

    def refuse(self, words, code):
        body = json.dumps({"error": {"message": words, "type": words, "code": code}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("X-Request-Id", self.headers["Authorization"] or "none")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def stream(self, comment, words):
        self.begin()
        first = {"id": words, "choices": [{"index": 0, "delta": {"content": "Hi"}}]}
        error = {"error": {"message": words, "type": words[:30], "code": words}}
        comment = comment.replace("\r", "")
        events = (
            f": {comment}",
            f"data: {json.dumps(first)}",
            f"data: {json.dumps(error)}",
            "data: [DONE]",
            "",
        )
        text = "\n\n".join(events).encode()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text))


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
