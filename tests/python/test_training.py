"""Trainer: the numbers of rttrain, resumed trainings, callbacks, early ends, wrong batches."""

import json
import math
import os
import signal
import subprocess
import threading
import unittest

import numpy
from support import main, mlp, scores, scratch

import librt
from librt._programs import path_of

THREADS = 1


def data(count=150, seed=5):
    """Two classes with noise."""
    random = numpy.random.default_rng(seed)
    centers = numpy.random.default_rng(0).standard_normal((2, 1000))
    labels = random.integers(0, 2, count)
    rows = centers[labels] * 0.1 + random.standard_normal((count, 1000))
    return {"input": rows.astype(numpy.float32), "labels": labels.astype(numpy.int64)}


def trainer(**options):
    return librt.Trainer(mlp(), backend="cpu", threads=THREADS, deterministic=True, **options)


def weights(trained):
    session = trained.session("train_step")
    return {name: session.read_state(name).numpy() for name in mlp().states}


class LikeRttrain(unittest.TestCase):
    def test_the_same_losses_metrics_and_weights(self):
        arrays, test = data(), data(70, seed=9)
        numpy.savez(scratch("train.npz"), **arrays)
        numpy.savez(scratch("test.npz"), **test)
        mlp().save(scratch("mlp.rt"))
        schedule, epochs, batch, seed = "cosine,warmup=3", 3, 32, 7
        command = [path_of("rttrain"), scratch("mlp.rt"), "--data", scratch("train.npz"), "--validate",
                   scratch("test.npz"), "--epochs", epochs, "--batch", batch, "--seed", seed, "--lr", 0.002,
                   "--schedule", schedule, "--backend", "cpu", "--threads", THREADS, "--deterministic=run", "--json",
                   "--log", scratch("log.jsonl"), "--log-every", 1, "--checkpoint", scratch("rttrain.ckpt")]
        out = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        wanted = [json.loads(line) for line in out.stdout.splitlines()]
        with open(scratch("log.jsonl"), encoding="utf-8") as file:
            steps = [json.loads(line) for line in file]
        steps = [row for row in steps if "validation_loss" not in row]

        ours, seen = trainer(learning_rate=0.002, schedule=schedule), []
        rows = ours.fit(
            librt.Batches(arrays, batch=batch, seed=seed), epochs=epochs,
            validation=librt.Batches(test, batch=batch, shuffle=False),
            callbacks=[lambda s: seen.append((s.loss, s.learning_rate)) if s.event == "step" else None],
        )
        self.assertEqual(len(seen), 3 * 5)
        self.assertEqual(len(rows), len(wanted))
        for row, other in zip(rows, wanted):
            self.assertEqual(row, {name: other[name] for name in row})
            self.assertEqual({name for name in other if name.startswith("validation_")} - set(row), set())
        self.assertLess(rows[-1]["loss"], rows[0]["loss"])
        self.assertEqual([loss for loss, rate in seen], [row["loss"] for row in steps])
        self.assertEqual([rate for loss, rate in seen], [row["learning_rate"] for row in steps])
        # Bit for bit.
        theirs = trainer()
        theirs.load(scratch("rttrain.ckpt"))
        for name, value in weights(theirs).items():
            numpy.testing.assert_array_equal(weights(ours)[name], value, err_msg=name)


class Entries(unittest.TestCase):
    def test_another_entry_takes_the_device_with_its_options(self):
        for options in ({"prefer": "throughput", "backend": "auto"},
                        {"custom_operators": {"com.example:Scale": print}}):
            trained = librt.Trainer(mlp(), **{"backend": "cpu", **options})
            self.assertIsNot(trained.session("infer"), trained.session("train_step"), options)


    def test_trains_the_states_of_a_session(self):
        model = mlp()
        session = librt.Session(model, backend="cpu", threads=THREADS, entry="infer")
        trained = librt.Trainer(model, backend="cpu", threads=THREADS, share_states_with=session)
        name = next(iter(model.states))
        before = session.read_state(name).numpy().copy()
        trained.step(data(8))
        after = session.read_state(name).numpy()
        self.assertFalse(numpy.array_equal(after, before))
        numpy.testing.assert_array_equal(after, trained.session("train_step").read_state(name).numpy())
        x = data(8)["input"]
        numpy.testing.assert_array_equal(scores(session(x)), scores(trained.session("infer")(x)))
        for make in (librt.Trainer, librt.Session):
            with self.assertRaisesRegex(TypeError, "share_states_with: expected a librt.Session"):
                make(model, backend="cpu", share_states_with=trained)


class Resume(unittest.TestCase):
    def batches(self):
        return librt.Batches(data(), batch=32, seed=3)

    def test_after_an_early_end(self):
        whole = trainer(schedule="linear")
        rows = whole.fit(self.batches(), epochs=3)
        path = scratch("resume.ckpt")
        first = trainer(schedule="linear,steps=15")
        first.fit(self.batches(), epochs=3, steps=7, checkpoint=path)
        self.assertEqual((first.state.step, first.state.epoch, first.state.batch), (7, 1, 2))
        second = trainer(schedule="linear,steps=15")
        resumed = second.fit(self.batches(), epochs=3, checkpoint=path, resume=True)
        self.assertEqual(resumed, rows)
        for name, value in weights(whole).items():
            numpy.testing.assert_array_equal(weights(second)[name], value)
        with self.assertRaisesRegex(librt.InvalidArgument, "exists; resume=True, or overwrite=True"):
            trainer().fit(self.batches(), checkpoint=path)

    def test_the_model_is_not_replaced(self):
        path, link = scratch("own.rt"), scratch("own-link.rt")
        mlp().save(path)
        os.symlink("own.rt", link)
        for option in ("checkpoint", "best"):
            for file in (path, link):
                with self.assertRaisesRegex(librt.InvalidArgument, "is the file of the model"):
                    librt.Trainer(path, backend="cpu").fit(
                        self.batches(), validation=self.batches(), overwrite=True, **{option: file}
                    )
            with self.assertRaisesRegex(librt.InvalidArgument, "is a model"):
                trainer().session("train_step").save_checkpoint(path if option == "best" else link)
        self.assertEqual(librt.load(path).entries, mlp().entries)

    def test_after_ctrl_c(self):
        path, whole = scratch("interrupted.ckpt"), trainer()
        rows = whole.fit(self.batches(), epochs=2)

        def interrupt(state):
            if state.step == 3:
                signal.raise_signal(signal.SIGINT)

        first = trainer()
        with self.assertRaises(KeyboardInterrupt):
            first.fit(self.batches(), epochs=2, checkpoint=path, callbacks=[interrupt])
        second = trainer()
        self.assertEqual(second.fit(self.batches(), epochs=2, checkpoint=path, resume=True), rows)
        for name, value in weights(whole).items():
            numpy.testing.assert_array_equal(weights(second)[name], value)

    def test_after_an_error_of_a_callback(self):
        """From the last checkpoint_every steps, to the same bits."""
        path, whole = scratch("every.ckpt"), trainer(schedule="linear")
        rows = whole.fit(self.batches(), epochs=2)

        def fail(state):
            if state.step == 8:
                raise LookupError("of the callback")

        first = trainer(schedule="linear")
        with self.assertRaisesRegex(LookupError, "of the callback"):
            first.fit(self.batches(), epochs=2, checkpoint=path, checkpoint_every=3, callbacks=[fail])
        steps, second = [], trainer(schedule="linear")
        resumed = second.fit(self.batches(), epochs=2, checkpoint=path, resume=True,
                             callbacks=[lambda state: steps.append(state.step) if state.event == "step" else None])
        self.assertEqual((resumed, steps), (rows, [7, 8, 9, 10]))
        for name, value in weights(whole).items():
            numpy.testing.assert_array_equal(weights(second)[name], value)

    def test_a_signal_at_any_moment(self):
        """Steps that were saved are those whose update took place."""
        path = scratch("any.ckpt")
        for delay in (0.01, 0.017, 0.03):
            one = trainer()
            timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))

            def begin(state):
                if (state.event, state.step) == ("step", 1):
                    timer.start()

            try:
                one.fit(self.batches(), epochs=1000, checkpoint=path, overwrite=True, callbacks=[begin])
                self.fail("was not interrupted")
            except KeyboardInterrupt:
                pass
            timer.join()
            counter = [n for n, kind in mlp().state_kinds.items() if kind == "counter" and "step" in n]
            if counter:
                two = trainer()
                two.load(path)
                value = two.session("train_step").read_state(counter[0]).numpy()
                self.assertEqual(int(value.reshape(-1)[0]), one.state.step)


class Fit(unittest.TestCase):
    def test_kinds_of_batches(self):
        arrays = data(64)
        pairs = [(arrays["input"][i : i + 32], arrays["labels"][i : i + 32]) for i in (0, 32)]
        dicts = [dict(zip(("input", "labels"), pair)) for pair in pairs]
        one, two = trainer(), trainer()
        self.assertEqual(one.fit(pairs, epochs=2), two.fit(dicts, epochs=2))
        with self.assertRaisesRegex(librt.InvalidArgument, "an iterator can be used once"):
            trainer().fit(iter(pairs), epochs=2)
        for wrong, text in (([(1, 2, 3)], "found 3 values"), ([5], "found int"), ([], "has 0 batches"),
                            ([{"input": pairs[0][0]}], "missing: 'labels'"),
                            ([(pairs[0][0], pairs[0][1].astype("i4"))], r"'labels': expected i64\[batch\]")):
            with self.assertRaisesRegex(librt.InvalidArgument, text):
                trainer().fit(wrong)

    def test_generators(self):
        arrays = data(96)

        def batches():
            for i in range(0, 96, 32):
                yield arrays["input"][i : i + 32], arrays["labels"][i : i + 32].tolist()  # labels as a list

        one, two = trainer(schedule="cosine"), trainer(schedule="cosine,steps=3")
        self.assertEqual(one.fit(batches(), steps=3), two.fit(batches()))
        three = trainer()
        three.fit(batches(), steps=2)
        self.assertEqual((three.state.step, three.state.epoch), (2, 0))

        class Endless:
            """An iterable that never ends: steps ends it."""

            def __iter__(self):
                while True:
                    yield from batches()

        self.assertEqual(trainer().fit(Endless(), epochs=9, steps=7)[-1]["step"], 7)

    def test_callbacks_patience_and_best(self):
        batches, path = librt.Batches(data(64), batch=32), scratch("best.ckpt")
        events = []

        def stop(state):
            events.append((state.event, state.step))
            state.stop = state.step == 3

        one = trainer()
        rows = one.fit(batches, epochs=5, callbacks=[stop])
        self.assertEqual(events, [("step", 1), ("step", 2), ("epoch", 2), ("step", 3), ("epoch", 3)])
        self.assertEqual([row["step"] for row in rows], [2, 3])
        patient = trainer(learning_rate=0.0)
        rows = patient.fit(batches, epochs=9, validation=batches, patience=2, best=path, monitor="accuracy")
        self.assertEqual((len(rows), patient.state.reason), (3, "no better accuracy in 2 epochs"))
        self.assertTrue(os.path.exists(path))
        with self.assertRaisesRegex(librt.InvalidArgument, "monitor: expected one of loss, accuracy"):
            trainer().fit(batches, validation=batches, monitor="beauty")

    def test_a_loss_that_is_not_finite(self):
        arrays = data(32)
        arrays["input"][0] = 3e38  # the sum overflows, and a difference of infinities is no number
        with self.assertRaisesRegex(librt.Error, "the loss of step 1 is (nan|inf), expected a finite number"):
            trainer().fit(librt.Batches(arrays, batch=32))
        one = trainer()
        one.fit(librt.Batches(arrays, batch=32), allow_nonfinite=True)
        self.assertFalse(math.isfinite(one.state.loss))

    def test_schedules_and_rates(self):
        batches, rates = librt.Batches(data(64), batch=32), []
        trainer(learning_rate=0.5, schedule=lambda step: 1 / (step + 1)).fit(
            batches, callbacks=[lambda s: rates.append(s.learning_rate) if s.event == "step" else None])
        self.assertEqual(rates, [0.5, 0.25])
        self.assertEqual(trainer().learning_rate, numpy.float32(1e-3))  # rttrain's for adam
        with self.assertRaisesRegex(librt.InvalidArgument, "schedule: expected one of constant"):
            trainer(schedule="sine")
        with self.assertRaisesRegex(librt.InvalidArgument, "the number of batches is not known"):
            trainer(schedule="cosine").fit(x for x in ())
        with self.assertRaisesRegex(librt.InvalidArgument, "learning_rate"):
            trainer(learning_rate=math.nan)
        with self.assertRaisesRegex(librt.InvalidModel, "train_step"):
            librt.Trainer(librt.convert("zoo:mlp"))

    def test_order_is_rttrains(self):
        batches = librt.Batches({"x": numpy.arange(10)}, batch=4, seed=2)
        first, second = ([row for batch in batches for row in batch["x"].tolist()] for _ in range(2))
        self.assertEqual(sorted(first), list(range(10)))
        self.assertNotEqual(first, second)
        self.assertEqual((len(batches), len(librt.Batches({"x": numpy.arange(10)}, batch=4, drop_last=True))), (3, 2))
        batches.set_epoch(0)
        self.assertEqual([row for batch in batches for row in batch["x"].tolist()], first)
        with self.assertRaisesRegex(librt.InvalidArgument, "the same extent"):
            librt.Batches({"x": numpy.zeros(3), "y": numpy.zeros(4)})


if __name__ == "__main__":
    main()
