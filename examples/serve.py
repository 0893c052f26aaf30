"""Score rows over HTTP: python serve.py MODEL [PORT]. POST a row as JSON; GET returns the columns and the classes."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import posteriori as po


def make_server(path, port=8000, host=""):
    """Return a server of the model in a file. `serve_forever` starts it, and each request gets a thread."""
    score = po.scoring.load_scorer(path)

    class Handler(BaseHTTPRequestHandler):
        def answer(self, status, content):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def do_GET(self):
            self.answer(200, {"columns": score.names, "classes": score.classes})

        def do_POST(self):
            try:
                row = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                if not isinstance(row, dict):
                    raise TypeError("send one row as a JSON object, from column name to cell")
                posterior = score(row)
            except (TypeError, ValueError) as error:  # of the row; its message names the column
                self.answer(400, {"error": str(error)})
                return
            self.answer(200, {str(label): p if p == p else None for label, p in posterior.items()})

    return ThreadingHTTPServer((host, port), Handler)


if __name__ == "__main__":
    make_server(sys.argv[1], *map(int, sys.argv[2:])).serve_forever()
