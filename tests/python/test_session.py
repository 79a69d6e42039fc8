"""Sessions: names, errors, threads, Ctrl-C, states, and the package without what it may lack."""

import ast
import ctypes.util
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import unittest

import numpy
from support import DIGITS, FLOAT, digits, main, mlp, onnx, pictures, scores, scratch

import librt


def slow_model(seconds_of_work=1):
    """A chain of products of large matrices: a run takes long, node by node."""
    nodes, name = [], "x"
    for i in range(100 * seconds_of_work):
        nodes.append(("MatMul", (name, "x"), (f"t{i}",)))
        nodes.append(("Tanh", (f"t{i}",), (f"u{i}",)))
        name = f"u{i}"
    nodes.append(("Identity", (name,), ("y",)))
    return librt.convert(onnx(tuple(nodes), (("x", FLOAT, (1500, 1500)),), (("y", FLOAT, (1500, 1500)),)))


class Runs(unittest.TestCase):
    def test_ways_to_call(self):
        session, x = digits(), pictures(3)
        wanted = scores(session.run({"input": x}))
        self.assertEqual(wanted.shape, (3, 10))
        for got in (session(x), session(input=x), session.run(dict(input=x).items().mapping)):
            numpy.testing.assert_array_equal(scores(got), wanted)
        one_by_one = numpy.concatenate([scores(session(row[None])) for row in x])
        numpy.testing.assert_allclose(one_by_one, wanted, rtol=1e-4, atol=1e-5)
        self.assertEqual(scores(session(x[:0])).shape, (0, 10))

    def test_the_memory_of_large_results(self):
        size = 3 << 20
        graph = onnx((("Relu", ("x",), ("y",)),), (("x", FLOAT, ("N",)),), (("y", FLOAT, ("N",)),))
        session = librt.Session(librt.convert(graph), backend="cpu")
        x = numpy.random.default_rng(1).standard_normal(size).astype(numpy.float32)

        def result(factor, n=size):
            return session(factor * x[:n])["y"].numpy()

        # What is referred to keeps its values; what is not serves the next run.
        kept, dropped = result(1), result(2)
        self.assertNotEqual(kept.ctypes.data, dropped.ctypes.data)
        address = dropped.ctypes.data
        del dropped
        again = result(3)
        self.assertEqual(again.ctypes.data, address)
        numpy.testing.assert_array_equal(kept, numpy.maximum(x, 0))
        numpy.testing.assert_array_equal(again, numpy.maximum(3 * x, 0))
        # Also for smaller ones, and after the session is closed for nothing.
        view = again[10:20]
        del again
        smaller = result(4, size * 3 // 4)
        self.assertNotEqual(smaller.ctypes.data, address)
        numpy.testing.assert_array_equal(view, numpy.maximum(3 * x[10:20], 0))
        address = smaller.ctypes.data
        del smaller
        smallest = result(5, size * 2 // 3)
        self.assertEqual(smallest.ctypes.data, address)
        numpy.testing.assert_array_equal(smallest, numpy.maximum(5 * x[:size * 2 // 3], 0))
        session.close()
        numpy.testing.assert_array_equal(smallest, numpy.maximum(5 * x[:size * 2 // 3], 0))

    def test_sources_of_a_model(self):
        with open(DIGITS, "rb") as file:
            data = file.read()
        x, wanted = pictures(1), scores(digits()(pictures(1)))
        for source in (DIGITS, data, bytearray(data), memoryview(data), librt.load(DIGITS, copy=True)):
            session = librt.Session(source, backend="cpu")
            numpy.testing.assert_array_equal(scores(session(x)), wanted)
        model = librt.load(data)
        self.assertIsNone(model.path)
        model.save(scratch("saved.rt"))
        with open(scratch("saved.rt"), "rb") as file:
            self.assertEqual(file.read(), data)
        self.assertEqual(os.listdir(os.path.dirname(scratch("saved.rt"))).count("saved.rt"), 1)

    def test_a_model_is_saved_where_a_link_leads(self):
        model = librt.load(DIGITS)
        with open(scratch("target.rt"), "wb") as file:
            file.write(b"old")
        os.symlink("target.rt", scratch("link.rt"))
        model.save(scratch("link.rt"))
        self.assertTrue(os.path.islink(scratch("link.rt")))
        self.assertEqual(librt.load(scratch("target.rt")).entries, ["infer"])
        # A pipe is written to, and is still one afterwards. So is a device.
        os.mkfifo(scratch("pipe.rt"))
        received = []

        def read():
            with open(scratch("pipe.rt"), "rb") as file:
                received.append(file.read())

        reader = threading.Thread(target=read)
        reader.start()
        model.save(scratch("pipe.rt"))
        reader.join()
        self.assertTrue(stat.S_ISFIFO(os.stat(scratch("pipe.rt")).st_mode))
        self.assertEqual(librt.load(received[0]).entries, ["infer"])
        with self.assertRaises(IsADirectoryError):
            model.save(os.path.dirname(scratch("x")))
        self.assertFalse([name for name in os.listdir(os.path.dirname(scratch("x"))) if ".partial-" in name])

    def test_descriptions(self):
        model = librt.load(DIGITS)
        self.assertEqual(model.entries, ["infer"])
        self.assertEqual(model.inputs()["input"].shape, ("batch", 28, 28, 1))
        self.assertEqual(model.inputs("infer")["input"].dtype, "f32")
        self.assertIn("fc3_1 f32[batch,10]", repr(digits()))
        self.assertEqual(digits().device.backend, "cpu")
        digits()(pictures(1))
        self.assertIn("Conv", digits().plan)
        self.assertGreater(digits().memory["arena"], 0)
        self.assertEqual(librt.backends()["cpu"], "")
        self.assertIn("cpu", [device.backend for device in librt.devices()])
        profiled = librt.Session(DIGITS, backend="cpu", profile=True)
        profiled(pictures(1))
        self.assertGreater(sum(row["seconds"] for row in profiled.profile()), 0)


class Errors(unittest.TestCase):
    def test_inputs(self):
        session, x = digits(), pictures(2)
        for call, text in (
            (lambda: session(), r"inputs: expected 'input'; missing: 'input' \(f32\[batch,28,28,1\]\)"),
            (lambda: session.run({"input": x, "mask": x}), "not inputs of the model: 'mask'"),
            (lambda: session.run({1: x}), "not inputs of the model: 1"),
            (lambda: session(x[0]), r"expected f32\[batch,28,28,1\], found f32\[28,28,1\]"),
            (lambda: session(x[:, :27]), r"found f32\[2,27,28,1\]"),
        ):
            with self.assertRaisesRegex(librt.InvalidArgument, text) as caught:
                call()
            self.assertEqual(caught.exception.status, "invalid_argument")
            self.assertIsInstance(caught.exception, (librt.Error, ValueError))
        for call, text in (
            (lambda: session(x, x), "has 1 inputs, found 2 arguments"),
            (lambda: session(x, input=x), "given twice"),
            (lambda: session.run(x), "run: expected a dict"),
        ):
            with self.assertRaisesRegex(TypeError, text):
                call()
        self.assertEqual(scores(session(x)).shape, (2, 10))  # it still works

    def test_models_and_options(self):
        for call, kind in (
            (lambda: librt.load("missing.rt"), librt.NotFound),
            (lambda: librt.load(b"not a model"), librt.InvalidModel),
            (lambda: librt.Session(DIGITS, backend="abacus"), librt.InvalidArgument),
            (lambda: librt.Session(DIGITS, entry="train_step"), librt.NotFound),
            (lambda: librt.Session(DIGITS, backend="cpu", memory_limit=1000), librt.OutOfMemory),
            (lambda: librt.load(DIGITS).inputs("other"), librt.NotFound),
            (lambda: librt.Session(DIGITS, colour=1), TypeError),
            (lambda: librt.Session(DIGITS, threads="two"), TypeError),
            (lambda: librt.Session(DIGITS, threads=-1), librt.InvalidArgument),
            (lambda: librt.Session(DIGITS, time_limit=0), ValueError),
            (lambda: librt.load(5), TypeError),
            (lambda: librt.load("a\0b"), ValueError),
        ):
            with self.assertRaises(kind):
                session = call()
                session(pictures(1))
        self.assertTrue(issubclass(librt.OutOfMemory, MemoryError) and issubclass(librt.IoError, OSError))


class States(unittest.TestCase):
    def test_read_write_checkpoint(self):
        session = librt.Session(mlp(), backend="cpu", entry="infer")
        name = next(name for name, kind in mlp().state_kinds.items() if kind == "parameter")
        before = session.read_state(name).numpy()
        session.write_state(name, before * 2)
        session.save_checkpoint(scratch("states.ckpt"), [("note", "kept")])
        session.reset_states()
        numpy.testing.assert_array_equal(session.read_state(name).numpy(), before)
        session.load_checkpoint(scratch("states.ckpt"))
        numpy.testing.assert_array_equal(session.read_state(name).numpy(), before * 2)
        self.assertEqual(session.checkpoint_value("note"), "kept")
        self.assertIsNone(session.checkpoint_value("other"))
        with self.assertRaises(librt.InvalidArgument):
            session.write_state(name, numpy.zeros(3, numpy.float32))
        with self.assertRaises(librt.NotFound):
            session.read_state("no such state")

    def test_shared(self):
        first = librt.Session(mlp(), backend="cpu", entry="infer")
        second = librt.Session(mlp(), backend="cpu", entry="infer", share_states_with=first)
        name = next(iter(mlp().states))
        first.write_state(name, numpy.full_like(first.read_state(name).numpy(), 3))
        numpy.testing.assert_array_equal(second.read_state(name).numpy(), first.read_state(name).numpy())


class Threads(unittest.TestCase):
    def test_two_on_one_session_take_turns(self):
        session = librt.Session(DIGITS, backend="cpu", threads=1)
        inputs = [pictures(n, seed=n) for n in (1, 2, 5, 1)]
        wanted = [scores(session(x)) for x in inputs]
        wrong = []

        def work(i):
            for _ in range(50):
                if not numpy.array_equal(scores(session(inputs[i])), wanted[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_the_interpreter_runs_meanwhile(self):
        session = librt.Session(slow_model(), backend="cpu", threads=1)
        x = numpy.full((1500, 1500), 0.001, numpy.float32)
        ended = []

        def work():
            try:
                session(x)
            except librt.Cancelled as error:
                ended.append(error.status)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.2)  # of a run of seconds
        self.assertTrue(thread.is_alive())
        start = time.monotonic()
        session.cancel()
        thread.join()
        self.assertEqual(ended, ["cancelled"])
        self.assertLess(time.monotonic() - start, 2)

    def test_an_input_that_calls_its_session(self):
        session, outcome = digits(), []

        class Calls:
            @property
            def __array_interface__(self):
                try:
                    session(pictures(1))
                except librt.InvalidArgument as error:
                    outcome.append(str(error))
                raise AttributeError

        with self.assertRaises(TypeError):
            session(Calls())
        self.assertIn("in use by this thread", outcome[0])

    def test_interrupt(self):
        session = librt.Session(slow_model(), backend="cpu", threads=1)
        x = numpy.full((1500, 1500), 0.001, numpy.float32)
        self.assertIs(threading.current_thread(), threading.main_thread())
        for handler, outcome in ((signal.default_int_handler, KeyboardInterrupt), (self.leave, ZeroDivisionError)):
            before = signal.signal(signal.SIGINT, handler)
            try:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                start = time.monotonic()
                with self.assertRaises(outcome):
                    session(x)
                self.assertLess(time.monotonic() - start, 2)
                self.assertIs(signal.getsignal(signal.SIGINT), handler)
            finally:
                signal.signal(signal.SIGINT, before)

    @staticmethod
    def leave(*_):
        raise ZeroDivisionError

    def test_a_handler_that_returns(self):
        """The run is begun again, and gives the right result."""
        session = librt.Session(DIGITS, backend="cpu", threads=1)
        x, calls = pictures(3000), []
        wanted = scores(session(x))
        before = signal.signal(signal.SIGINT, lambda *_: calls.append(1))
        try:
            for i in range(20):
                threading.Timer(0.002 * i, os.kill, (os.getpid(), signal.SIGINT)).start()
                numpy.testing.assert_array_equal(scores(session(x)), wanted)
            time.sleep(0.05)
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertTrue(calls)

    def test_time_limit(self):
        session = librt.Session(slow_model(), backend="cpu", threads=1, time_limit=0.1)
        with self.assertRaises(librt.LimitExceeded):
            session(numpy.ones((1500, 1500), numpy.float32))


class Package(unittest.TestCase):
    def test_stubs_have_what_the_module_has(self):
        from librt import _native

        path = os.path.join(os.path.dirname(_native.__file__), "_native.pyi")
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        declared = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        for name in dir(_native):
            if name.startswith("_"):
                continue
            self.assertIn(name, declared)
            members = {node.name for node in getattr(declared[name], "body", []) if isinstance(node, ast.FunctionDef)}
            for member, value in vars(getattr(_native, name)).items() if isinstance(getattr(_native, name), type) else ():
                if not member.startswith("_"):
                    self.assertIn(member, members)
                    self.assertTrue(value.__doc__, f"{name}.{member} has no docstring")
        for name in librt.__all__:
            self.assertTrue(hasattr(librt, name))

    def test_importing_needs_nothing(self):
        """Neither NumPy nor PyTorch, and no folder of librt in any variable."""
        environment = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "RT_MODULE_PATH")}
        code = "import sys, librt; assert not {'numpy', 'torch', 'onnx'} & set(sys.modules); print(librt.backends()['cpu'])"
        out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd="/")
        self.assertEqual((out.returncode, out.stdout.strip()), (0, ""), out.stderr)


# An OpenMP runtime for the whole process, as PyTorch brings one; prints how many threads that are not librt's a session adds.
WITH_OPENMP = """
import ctypes, os
import numpy
ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)
import librt

def others():
    names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
    return sum(name != "librt-cpu" for name in names)

model = librt.convert("zoo:mlp")
before = others()
session = librt.Session(model, backend="cpu", threads=3)
for _ in range(3):
    session(numpy.ones((64, 1000), numpy.float32))
print(others() - before)
"""


class OpenMP(unittest.TestCase):
    def test_onednn_uses_the_threads_of_librt(self):
        if ctypes.util.find_library("gomp") is None:
            self.skipTest("there is no libgomp")
        environment = {name: value for name, value in os.environ.items() if name != "RT_MODULE_PATH"}
        out = subprocess.run([sys.executable, "-c", WITH_OPENMP], capture_output=True, text=True, env=environment)
        self.assertEqual((out.returncode, out.stdout), (0, "0\n"), out.stderr)


if __name__ == "__main__":
    main()
