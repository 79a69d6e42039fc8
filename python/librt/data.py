"""Batches of arrays in memory, in the order in which rttrain takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._native import epoch_order
from .errors import InvalidArgument


class Batches:
    """Batches of arrays whose first axis counts the samples.

        batches = librt.Batches({"image": images, "labels": labels}, batch=32, seed=1)

    Each pass over it is an epoch, with an order of its own that depends on `seed` and the epoch alone: the order
    of `rttrain --seed`. The last batch of an epoch may be smaller, unless drop_last.
    """

    def __init__(
        self, arrays: Mapping[str, Any], *, batch: int = 32, seed: int = 1, shuffle: bool = True,
        drop_last: bool = False
    ) -> None:
        import numpy

        self.arrays = {name: numpy.asarray(array) for name, array in arrays.items()}
        sizes = {name: array.shape[0] if array.ndim else None for name, array in self.arrays.items()}
        if len(set(sizes.values())) != 1 or None in sizes.values():
            raise InvalidArgument(f"arrays: expected a first axis of the same extent, found {sizes}")
        if batch < 1:
            raise InvalidArgument(f"batch: expected a number above 0, found {batch}")
        self.samples: int = next(iter(sizes.values()))
        self.batch = batch
        self.seed = seed
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.epoch = 0  #: of the next pass

    def __len__(self) -> int:
        """Batches of an epoch."""
        whole, rest = divmod(self.samples, self.batch)
        return whole + (1 if rest and not self.drop_last else 0)

    def set_epoch(self, epoch: int) -> None:
        """The epoch of the next pass, for a training that is resumed."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[dict[str, Any]]:
        order = epoch_order(self.samples, self.seed, self.epoch, self.shuffle)
        self.epoch += 1
        for i in range(len(self)):
            rows = order[i * self.batch : (i + 1) * self.batch]
            yield {name: array[rows] for name, array in self.arrays.items()}
