"""A server that says exactly what a test tells it to, byte by byte; its own process, with plain sockets.

Reads one JSON object per line from stdin: `{"id", "scripts", "family", "tls"}`, and answers each with
`{"id", "port"}`. The n-th connection to that port plays the n-th script, later ones the last. What happens
is reported as JSON lines with monotonic times (the clock is the same in all processes of a machine).
"""

import json
import socket
import ssl
import struct
import sys
import threading
import time

lock = threading.Lock()


def report(**event):
    with lock:
        print(json.dumps(event), flush=True)


class Conversation:
    def __init__(self, sock, **labels):
        self.sock = sock
        self.labels = labels
        self.rest = bytearray()

    def report(self, event, **more):
        report(event=event, t=time.monotonic(), **self.labels, **more)

    def play(self, script):
        try:
            for step in script:
                name, *arguments = [step] if isinstance(step, str) else step
                getattr(self, name)(*arguments)
        except (OSError, EOFError) as error:
            self.report("gone", error=type(error).__name__)
        finally:
            self.sock.close()

    def read(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        while len(self.rest) < length:
            self.more()
        self.report("request", head=bytes(head).decode("latin-1"), length=length)
        self.rest = self.rest[length:]

    def more(self):
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError
        self.rest += data

    def send(self, text):
        self.sock.sendall(text.encode("latin-1"))
        self.report("sent")

    def blob(self, text, times):
        self.sock.sendall(text.encode("latin-1") * times)

    def sleep(self, seconds):
        time.sleep(seconds)

    def drip(self, template, count, interval):
        """Send *template* % n as chunks on a fixed schedule; report the moments before and after each."""
        times = []
        began = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, began + number * interval - time.monotonic()))
            piece = (template % number).encode("latin-1")
            before = time.monotonic()
            self.sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            times.append((before, time.monotonic()))
        self.report("dripped", times=times)

    def close(self):
        self.sock.close()

    def linger(self):
        """Wait until the client is gone."""
        while True:
            self.more()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def cork(self):
        """Hold back what follows, so that it goes out in one segment (after 0.2 s at the latest)."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)

    def unwrap(self):
        """Say close_notify, but do not wait for the client's."""
        self.sock.settimeout(0.2)
        try:
            self.sock.unwrap()
        except (OSError, ssl.SSLError):
            pass

    def handshake(self, context):
        self.sock = context.wrap_socket(self.sock, server_side=True, do_handshake_on_connect=False)
        self.sock.do_handshake()
        self.report("shaken", alpn=self.sock.selected_alpn_protocol())


def context_for(tls):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls["cert"], tls["key"])
    context.set_alpn_protocols(["http/1.1"])
    context.sni_callback = lambda sock, name, _: report(event="sni", id=tls["id"], name=name)
    if "client_ca" in tls:
        context.load_verify_locations(tls["client_ca"])
        context.verify_mode = ssl.CERT_REQUIRED
    if tls.get("max") == "1.2":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def listen(order):
    family = socket.AF_INET6 if order.get("family") == "inet6" else socket.AF_INET
    host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    server = socket.socket(family, socket.SOCK_STREAM)
    server.bind((host, 0))
    server.listen(4096)
    context = context_for({**order["tls"], "id": order["id"]}) if order.get("tls") else None
    report(id=order["id"], port=server.getsockname()[1])
    number = 0
    while True:
        sock, _ = server.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        script = order["scripts"][min(number, len(order["scripts"]) - 1)]
        talk = Conversation(sock, id=order["id"], conn=number)
        talk.report("accepted")
        steps = [["handshake", context], *script] if context else script
        threading.Thread(target=talk.play, args=(steps,), daemon=True).start()
        number += 1


for line in sys.stdin:
    threading.Thread(target=listen, args=(json.loads(line),), daemon=True).start()
