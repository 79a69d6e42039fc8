"""The training loop: batches in, a trained model out, as rttrain does it."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _native, errors
from ._native import Model, Schedule, Session

_POSITION = "librt.position"


@dataclass
class TrainingState:
    """Where a training is, for callbacks. A callback sets `stop` to end the training after this step or epoch."""

    trainer: Trainer
    event: str = ""  #: "step" or "epoch": what has just been completed
    epoch: int = 0  #: epochs completed
    batch: int = 0  #: batches of the current epoch that were trained on
    step: int = 0  #: steps completed
    loss: float = math.nan  #: of the last step, before its update
    learning_rate: float = math.nan  #: of the last step
    epoch_loss: float = math.nan  #: mean over the samples of the epoch so far
    validation: dict[str, float] = field(default_factory=dict)  #: of the last epoch
    history: list[dict[str, float]] = field(default_factory=list)  #: a row for each epoch
    best: float = math.nan  #: best value of `monitor`
    waiting: int = 0  #: epochs since the best one
    stop: bool = False
    reason: str = ""  #: why the training ended before its last epoch
    loss_sum: float = 0.0
    seen: int = 0  #: samples of the current epoch


# Of a state, what a checkpoint holds; floats in hexadecimal, to be exact.
_SAVED = ("epoch", "batch", "step", "loss", "learning_rate", "loss_sum", "seen", "best", "waiting", "history")


def _to_text(state: TrainingState) -> str:
    values = {name: getattr(state, name) for name in _SAVED}
    return json.dumps({name: value.hex() if isinstance(value, float) else value for name, value in values.items()})


def _from_text(state: TrainingState, text: str) -> None:
    for name, value in json.loads(text).items():
        setattr(state, name, float.fromhex(value) if isinstance(value, str) else value)


class Trainer:
    """Trains a model that was converted with train=True.

        model = librt.convert("net.onnx", train=True, loss="cross_entropy", optimizer="adam")
        trainer = librt.Trainer(model, learning_rate=1e-3, schedule="cosine,warmup=100")
        trainer.fit(librt.Batches({"image": x, "labels": y}, batch=32), epochs=5, validation=[(x2, y2)])
        scores = trainer.session("infer")(x2)

    learning_rate: of the first step; None: rttrain's default for the model's optimizer.
    schedule: as `rttrain --schedule` has it, or a function from the step 0, 1, .. to a factor.
    options: those of librt.Session.
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str] | bytes,
        *,
        learning_rate: float | None = None,
        schedule: str | Callable[[int], float] = "constant",
        **options: Any,
    ) -> None:
        self.model: Model = model if isinstance(model, Model) else _native.load(model)
        if "train_step" not in self.model.entries and "entry" not in options:
            raise errors.InvalidModel("the model has no entry train_step; convert it with train=True")
        self._steps = _native.Steps(self.model, **options)
        self._metadata = self.model.metadata
        if learning_rate is None:
            optimizer = self._metadata.get("train.optimizer", "")
            learning_rate = _native.default_learning_rate(optimizer)
            if learning_rate is None:
                raise errors.InvalidArgument(
                    f"the model does not say a known optimizer ('{optimizer}'), and so there is no default: set "
                    "learning_rate"
                )
        if not math.isfinite(learning_rate) or learning_rate < 0:
            raise errors.InvalidArgument(f"learning_rate: expected a number from 0, found {learning_rate}")
        self.learning_rate = learning_rate
        self.schedule = schedule
        if isinstance(schedule, str):
            Schedule(schedule, 10**9)  # a wrong text is an error now
        self._sessions: dict[str, Session] = {}
        inputs = self._steps.session.inputs
        self._inputs = [name for name in inputs if name != "learning_rate"]
        self.state = TrainingState(self)

    @property
    def inputs(self) -> list[str]:
        """Names of what a batch holds, in the order of a tuple."""
        return list(self._inputs)

    def session(self, entry: str = "infer") -> Session:
        """A session on another entry that shares the trained weights."""
        if entry == "train_step":
            return self._steps.session
        if entry not in self._sessions or self._sessions[entry].closed:
            self._sessions[entry] = self._steps.open(entry)
        return self._sessions[entry]

    def step(self, batch: Any, learning_rate: float | None = None) -> float:
        """One step on a batch, a dict by name or a tuple in the order of `inputs`; returns the loss before it."""
        return self._steps.step(self._named(batch), self.learning_rate if learning_rate is None else learning_rate)

    def _named(self, batch: Any) -> dict[str, Any]:
        if isinstance(batch, Mapping):
            return batch if isinstance(batch, dict) else dict(batch)
        if isinstance(batch, (tuple, list)) and len(batch) == len(self._inputs):
            return dict(zip(self._inputs, batch))
        found = f"{len(batch)} values" if isinstance(batch, (tuple, list)) else type(batch).__name__
        raise errors.InvalidArgument(
            f"a batch: expected a dict, or a tuple of {len(self._inputs)} arrays ({', '.join(self._inputs)}), found "
            f"{found}"
        )

    def _rates(self, batches: Any, epochs: int, steps: int | None) -> Callable[[int], float]:
        """From the step to the learning rate."""
        base = struct.unpack("f", struct.pack("f", self.learning_rate))[0]  # an f32, as rttrain has it
        if callable(self.schedule):
            factor = self.schedule
            return lambda step: base * factor(step)
        length = steps
        if hasattr(batches, "__len__"):
            all_steps = len(batches) * epochs
            length = min(steps, all_steps) if steps else all_steps
        kind = self.schedule.split(",")[0]
        if length is None and kind not in ("constant", "step") and ",steps=" not in self.schedule:
            raise errors.InvalidArgument(
                f"schedule {kind}: the number of batches is not known; give it as ',steps=N', or give fit() steps"
            )
        schedule = Schedule(self.schedule, length or 1)
        return lambda step: schedule.learning_rate(base, step)

    def fit(
        self,
        batches: Iterable[Any],
        *,
        epochs: int = 1,
        steps: int | None = None,
        validation: Iterable[Any] | None = None,
        callbacks: Iterable[Callable[[TrainingState], None]] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 0,
        best: str | os.PathLike[str] | None = None,
        monitor: str | None = None,
        patience: int = 0,
        resume: bool = False,
        overwrite: bool = False,
        allow_nonfinite: bool = False,
    ) -> list[dict[str, float]]:
        """Trains, and returns a row for each epoch: epoch, step, loss, and the metrics of the validation.

        batches: anything that can be iterated over once for each epoch: librt.Batches, a torch DataLoader, a list.
        A batch is a dict of arrays by input name, or a tuple in the order of `inputs`.
        steps: ends the training after so many. validation: batches for evaluate(), after each epoch.
        callbacks: called with `state` after each step and each epoch.
        checkpoint: a file written after each epoch, every `checkpoint_every` steps, at the end, and when Ctrl-C
        ends the training; resume=True continues from it: batches that it has seen are skipped, and where `batches`
        has set_epoch(), it is called. best: a checkpoint of the epoch with the best `monitor` (default: the first
        metric). patience: ends the training after so many epochs without a better one.
        A loss that is not finite raises librt.Error unless allow_nonfinite.
        """
        if epochs < 1 or steps is not None and steps < 1:
            raise errors.InvalidArgument("fit: expected epochs and steps above 0")
        if validation is None and (best or monitor or patience):
            raise errors.InvalidArgument("fit: best, monitor and patience need validation")
        model = self.model.path
        for path in (checkpoint, best):
            if path is not None and model and os.path.exists(path) and os.path.samefile(path, model):
                raise errors.InvalidArgument(f"{os.fspath(path)}: is the file of the model, which it would replace")
        if not resume and not overwrite:
            for path in (checkpoint, best):
                if path is not None and os.path.exists(path):
                    raise errors.InvalidArgument(f"{os.fspath(path)}: exists; resume=True, or overwrite=True")
        self.state = state = TrainingState(self)
        if resume:
            if checkpoint is None:
                raise errors.InvalidArgument("fit: resume needs checkpoint")
            self._resume(checkpoint)
        run = _Run(self, batches, self._rates(batches, epochs, steps), list(callbacks), steps, allow_nonfinite)
        run.checkpoint, run.every = checkpoint, checkpoint_every
        try:
            while state.epoch < epochs and not run.is_over():
                whole = run.epoch()
                self._record(validation)
                if whole:
                    self._end_epoch(monitor, best, patience)
                run.call("epoch")
                if checkpoint is not None and whole:
                    self.save(checkpoint)
                if not whole:
                    break
        except KeyboardInterrupt:
            if checkpoint is not None:
                run.catch_up()
                self.save(checkpoint)
            raise
        if checkpoint is not None:
            self.save(checkpoint)
        return state.history

    def _record(self, validation: Iterable[Any] | None) -> None:
        """A row for the epoch in progress, which may have ended early."""
        state = self.state
        row = {"epoch": state.epoch + 1, "step": state.step, "loss": state.epoch_loss}
        if validation is not None:
            state.validation = self.evaluate(validation)
            row.update({f"validation_{name}": value for name, value in state.validation.items()})
        state.history.append(row)

    def _end_epoch(self, monitor: str | None, best: str | os.PathLike[str] | None, patience: int) -> None:
        state = self.state
        state.epoch += 1
        state.batch = state.seen = 0
        state.loss_sum = 0.0
        if not state.validation:
            return
        name = monitor or next(iter(state.validation))
        if name not in state.validation:
            raise errors.InvalidArgument(f"monitor: expected one of {', '.join(state.validation)}, found {name}")
        self._judge(state.validation[name], name, best)
        if patience and state.waiting >= patience:
            state.stop, state.reason = True, f"no better {name} in {patience} epochs"

    def _judge(self, value: float, name: str, best: str | os.PathLike[str] | None) -> None:
        state = self.state
        better = value > state.best if _native.larger_is_better(name) else value < state.best
        state.waiting += 1
        if better or math.isnan(state.best) and not math.isnan(value):
            state.best, state.waiting = value, 0
            if best is not None:
                self.save(best)

    def evaluate(self, batches: Iterable[Any]) -> dict[str, float]:
        """The metrics of rttrain's validation over all batches, which are as for fit().

        For classes: loss (cross entropy in nats), accuracy, top5, f1_macro, perplexity; for binary targets loss,
        accuracy, f1_macro; for regression mse, mae.
        """
        metadata = self._metadata
        if metadata.get("train.loss") == "ctc":
            raise errors.Unsupported("evaluate: the metrics of ctc are rttrain's alone; decode the outputs yourself")
        ignored = metadata.get("train.ignore_index")
        metrics = _native.Metrics(
            probabilities=metadata.get("train.output") == "probabilities",
            binary=metadata.get("train.loss") == "bce_with_logits",
            class_axis=int(metadata.get("train.class_axis", -1)),
            ignored=None if ignored is None else int(ignored),
        )
        session = self.session("infer")
        known, output = session.inputs, next(iter(session.outputs))
        labels = [name for name in self._inputs if name in ("labels", "target")]
        if not labels:
            raise errors.Unsupported("evaluate: the training step has neither labels nor target")
        is_class = self._steps.session.inputs[labels[0]].dtype == "i64"
        for batch in batches:
            named = self._named(batch)
            if labels[0] not in named:
                raise errors.InvalidArgument(f"evaluate: a batch without '{labels[0]}'")
            outputs = session.run({name: value for name, value in named.items() if name in known})
            metrics.add(outputs[output], named[labels[0]], is_class)
        return metrics.results()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint: all states, and where fit() is. `rtconvert MODEL.rt --checkpoint` takes it, too."""
        self._steps.session.save_checkpoint(path, [(_POSITION, _to_text(self.state))])

    def load(self, path: str | os.PathLike[str]) -> None:
        """Restores the states of a checkpoint, of this class or of rttrain."""
        self._steps.session.load_checkpoint(path)

    def _resume(self, path: str | os.PathLike[str]) -> None:
        self.load(path)
        text = self._steps.session.checkpoint_value(_POSITION)
        if text is None:
            raise errors.InvalidArgument(
                f"{os.fspath(path)}: was not written by librt.Trainer; load() takes its weights"
            )
        _from_text(self.state, text)
        # An epoch that had ended early is recorded again.
        self.state.history = [row for row in self.state.history if row["epoch"] <= self.state.epoch]


class _Run:
    """A call of fit(): the steps of an epoch."""

    def __init__(
        self,
        trainer: Trainer,
        batches: Iterable[Any],
        rates: Callable[[int], float],
        callbacks: list[Callable[[TrainingState], None]],
        steps: int | None,
        allow_nonfinite: bool,
    ) -> None:
        self.trainer, self.batches, self.rates, self.callbacks = trainer, batches, rates, callbacks
        self.steps, self.allow_nonfinite = steps, allow_nonfinite
        self.checkpoint: str | os.PathLike[str] | None = None
        self.every = 0
        # The extension counts, too: an interrupt may arrive between a step and the line after it.
        self.offset = trainer.state.step - trainer._steps.count

    def is_over(self) -> bool:
        state = self.trainer.state
        return state.stop or self.steps is not None and state.step >= self.steps

    def call(self, event: str) -> None:
        self.trainer.state.event = event
        for callback in self.callbacks:
            callback(self.trainer.state)

    def catch_up(self) -> None:
        state = self.trainer.state
        missed = self.trainer._steps.count + self.offset - state.step
        state.step += missed
        state.batch += missed

    def epoch(self) -> bool:
        """The rest of the epoch; False if it was not completed."""
        state = self.trainer.state
        if hasattr(self.batches, "set_epoch"):
            self.batches.set_epoch(state.epoch)
        skip, found = state.batch, 0
        for batch in self.batches:
            found += 1
            if found <= skip:
                continue
            if self.is_over():
                return False
            self.step(batch)
        if found == 0 or found < skip:
            raise errors.InvalidArgument(
                f"fit: epoch {state.epoch + 1} has {found} batches"
                + (f", and {skip} were seen before" if skip else "; an iterator can be used once: give a list or an "
                   "object whose iter() starts again")
            )
        return True

    def step(self, batch: Any) -> None:
        trainer, state = self.trainer, self.trainer.state
        named = trainer._named(batch)
        rate = self.rates(state.step)
        loss = trainer._steps.step(named, rate)
        state.step += 1
        state.batch += 1
        state.loss, state.learning_rate = loss, rate
        if not math.isfinite(loss) and not self.allow_nonfinite:
            raise errors.Error(
                f"the loss of step {state.step} is {loss}, expected a finite number; lower the learning rate, or go on "
                "with allow_nonfinite=True"
            )
        samples = _samples(named)
        state.loss_sum += loss * samples
        state.seen += samples
        state.epoch_loss = state.loss_sum / max(state.seen, 1)
        self.call("step")
        if self.checkpoint is not None and self.every and state.step % self.every == 0:
            trainer.save(self.checkpoint)


def _samples(named: Mapping[str, Any]) -> int:
    """Samples of a batch: the first axis of its first array."""
    for value in named.values():
        try:
            return len(value)
        except TypeError:
            continue
    return 1
