#!/usr/bin/env python3
"""A server on this machine's loopback for the recipes: a table at /rain.csv, an answer of a "model" at every other path.

    python3 server.py [PORT]
"""

import http.server
import sys

TABLE = b"place,rain_mm\nsea,12.5\nhill,3.0\n"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = TABLE if self.path == "/rain.csv" else b"a model server\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 18081), Handler)
print(f"port {server.server_port}", flush=True)
server.serve_forever()
