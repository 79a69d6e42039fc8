#!/usr/bin/env python3
"""serve.py SERVE RTRUN MODEL WORK: examples/serve under load, compared with rtrun; its errors; and its end.

MODEL is examples/digits.rt: rows [28,28,1] in, ten scores out.
"""
import http.client
import queue
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SERVE, RTRUN, MODEL, WORK = sys.argv[1:5]
PIXELS, SCORES = 28 * 28, 10


def fail(what):
    print(f"FAILED: serve: {what}")
    sys.exit(1)


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([SERVE, MODEL, "--port", "0", "--backend", "cpu", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)  # fmt: skip
        line = self.process.stdout.readline()
        if not line.startswith("listening on 127.0.0.1:"):
            fail(f"expected its address, found {line!r} and {self.process.stderr.read()!r}")
        self.port = int(line.rsplit(":", 1)[1])

    def call(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def end(self, with_signal=signal.SIGTERM):
        self.process.send_signal(with_signal)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail("it did not end within a minute of the signal")
        if code != 0:
            fail(f"exit code {code}: {self.process.stderr.read()}")


def rows_and_scores(count):
    """Random rows, and what rtrun computes for all of them together."""
    chance = random.Random(5)
    values = [chance.random() for _ in range(count * PIXELS)]
    data = struct.pack(f"<{len(values)}f", *values)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, 28, 28, 1), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    Path(WORK, "rows.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    subprocess.run([RTRUN, MODEL, "--backend", "cpu", "--quiet", "--input", f"input={WORK}/rows.npy", "--save",
                    f"fc3_1={WORK}/scores.npy"], check=True)  # fmt: skip
    scores = Path(WORK, "scores.npy").read_bytes()[-4 * SCORES * count :]
    size = 4 * PIXELS
    return [data[i * size : (i + 1) * size] for i in range(count)], struct.unpack(f"<{SCORES * count}f", scores)


def expect_equal(answer, scores, i):
    status, body = answer
    if status != 200 or len(body) != 4 * SCORES:
        fail(f"request {i}: status {status}, {body[:200]!r}")
    for found, expected in zip(struct.unpack(f"<{SCORES}f", body), scores[i * SCORES : (i + 1) * SCORES]):
        if abs(found - expected) > 1e-4 + 1e-4 * abs(expected):
            fail(f"request {i}: {found}, expected {expected}")


def under_load(rows, scores):
    server = Server("--batch", "8", "--wait", "20", "--workers", "2")
    with ThreadPoolExecutor(16) as pool:
        for i, answer in enumerate(pool.map(lambda row: server.call("POST", "/run", row), rows)):
            expect_equal(answer, scores, i)
    expect_equal(server.call("POST", "/run", rows[0]), scores, 0)  # alone, after `wait`
    return server


def errors(server, rows):
    for method, path, body, status, text in (
        ("POST", "/run", rows[0][:-4], 400, "expected a row of f32 [28,28,1], 3136 bytes, found 3132 bytes"),
        ("POST", "/run", b"", 400, "found 0 bytes"),
        ("POST", "/run", rows[0] + b"more", 413, "a body has 3136 bytes"),
        ("GET", "/run", None, 404, "POST /run"),
        ("GET", "/nothing", None, 404, "POST /run"),
        ("GET", "/health", None, 200, "ok"),
        ("GET", "/model", None, 200, '"input":[28,28,1],"output":[10]'),
    ):
        found, answer = server.call(method, path, body)
        if found != status or text not in answer.decode():
            fail(f"{method} {path}: {found} {answer!r}, expected {status} and {text!r}")
    with socket.create_connection(("127.0.0.1", server.port)) as connection:  # no HTTP, and an end in between
        connection.sendall(b"nonsense\r\n\r\n")
    if server.call("GET", "/health")[0] != 200:
        fail("after a connection without HTTP")


def overload(rows, scores):
    """Of three requests two may wait, the third is refused. The end of the program does not wait for a full batch."""
    server = Server("--batch", "64", "--wait", "60000", "--queue", "2")
    answers, arrived = {}, queue.Queue()

    def ask(i):
        answers[i] = server.call("POST", "/run", rows[i])
        arrived.put(i)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    refused = arrived.get(timeout=30)
    if answers[refused][0] != 503 or b"try again" not in answers[refused][1]:
        fail(f"expected 503 for one of three requests, found {answers[refused]}")
    server.end(signal.SIGINT)
    for thread in threads:
        thread.join()
    for i in {0, 1, 2} - {refused}:
        expect_equal(answers[i], scores, i)


def usage():
    for arguments, text in (([], "MODEL.rt"), ([MODEL, "--batch", "0"], "MODEL.rt"), (["missing.rt"], "missing.rt"),
                            ([MODEL, "--backend", "abacus"], "abacus"), ([MODEL, "--host", "192.0.2.1"], "cannot be bound")):  # fmt: skip
        done = subprocess.run([SERVE, *arguments], capture_output=True, text=True, timeout=60)
        if done.returncode != 2 or text not in done.stderr:
            fail(f"{arguments}: exit code {done.returncode}, {done.stderr!r}")


rows, scores = rows_and_scores(100)
server = under_load(rows, scores)
errors(server, rows)
server.end()
overload(rows, scores)
usage()
print(f"serve: {len(rows)} concurrent requests equal rtrun's rows")
