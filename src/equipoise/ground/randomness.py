"""Random numbers from a secret seed and a record's key, independent of row order, partition and engine.

Each record's key is turned into 128 bits by AES in CBC-MAC form under a key derived from the seed, and each draw is
AES of (those bits, counter) under a key derived from (seed, step). AES is fixed by a standard, so the same seed gives
the same numbers on every version and machine; whoever lacks the seed can predict none of them.
"""

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.ground.errors import ParameterError

BLOCK_BYTES = 16
CHUNK_RECORDS = 1 << 15
MAX_PADDED_BYTES, MAX_ROUNDS_PER_KEY = 1 << 26, 100
"""Memory for the keys of a chunk, all padded to the longest; blocks per key from which keys are taken one by one."""


def new_seed() -> int:
    """A random seed: 128 bits from the operating system."""
    return secrets.randbits(128)


@dataclass(frozen=True, slots=True)
class Draws:
    """Random draws of one step of a recipe, one per record key.

    >>> a = Draws(7).child(0).uniform(pl.Series([10, 11, 12]))
    >>> b = Draws(7).child(0).uniform(pl.Series([12, 10, 11]))
    >>> bool((a[[2, 0, 1]] == b).all())
    True
    """

    seed: int = field(repr=False)
    path: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 128:
            raise ParameterError("A seed must be a whole number from 0 to 2**128 - 1.")

    def child(self, step: int) -> "Draws":
        return Draws(self.seed, (*self.path, step))

    def uniform(self, keys: pl.Series, counter: int = 0) -> NDArray[np.float64]:
        """One number in [0, 1) per key, 53 bits each. O(records), vectorised in pieces that stay in the cache."""
        secret = self._key("draw", *self.path)
        numbers = np.empty(len(keys))
        for start in range(0, len(keys), CHUNK_RECORDS):
            marks = self._mac(keys[start : start + CHUNK_RECORDS])
            marks[:, 1] ^= np.uint64(counter)
            numbers[start : start + CHUNK_RECORDS] = _encrypt(secret, marks)[:, 0] >> np.uint64(11)
        numbers *= 2.0**-53
        return numbers

    def normal(self, keys: pl.Series, counter: int = 0) -> NDArray[np.float64]:
        """One standard normal number per key, by the inverse of the distribution function."""
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniform(keys, counter) + 2.0**-54))

    def tokens(self, keys: pl.Series) -> NDArray[np.uint64]:
        """A keyed number of 64 bits for each key: equal keys have equal ones; without the seed they tell nothing.

        >>> one, two, three = Draws(7).tokens(pl.Series(["ann", "bob", "ann"]))
        >>> one == three, one == two
        (np.True_, np.False_)
        """
        secret, tokens = self._key("token", *self.path), np.empty(len(keys), dtype=np.uint64)
        for start in range(0, len(keys), CHUNK_RECORDS):
            marks = self._mac(keys[start : start + CHUNK_RECORDS])
            tokens[start : start + CHUNK_RECORDS] = _encrypt(secret, marks)[:, 0]
        return tokens

    def _key(self, *words: object) -> bytes:
        text = "|".join(map(str, ("equipoise", self.seed, *words)))
        return hashlib.sha256(text.encode()).digest()[:BLOCK_BYTES]

    def _mac(self, keys: pl.Series) -> NDArray[np.uint64]:
        """CBC-MAC of each key's bytes, length first so that no key is a prefix of another."""
        secret = self._key("key")
        if keys.dtype.is_integer() and keys.dtype not in (pl.Int128, pl.UInt128):
            state = np.zeros((len(keys), 2), dtype=np.uint64)
            state[:, 0] = keys.to_numpy().astype(np.uint64)
            return _encrypt(secret, state)
        texts = keys.cast(pl.String).cast(pl.Binary)
        lengths = texts.bin.size().to_numpy().astype(np.uint64)
        width = BLOCK_BYTES * max(1, -(-int(lengths.max() if len(lengths) else 0) // BLOCK_BYTES))
        if len(keys) > 1 and len(keys) * width > MAX_PADDED_BYTES:
            return self._mac_by_length(keys, lengths)
        padded = np.array(texts.to_list(), dtype=f"S{width}")
        blocks = padded.view(np.uint64).reshape(len(keys), width // BLOCK_BYTES, 2)
        state = np.zeros((len(keys), 2), dtype=np.uint64)
        state[:, 0], state[:, 1] = lengths, 1
        state = _encrypt(secret, state)
        if blocks.shape[1] > MAX_ROUNDS_PER_KEY * len(keys):
            return _chained(secret, state, texts.to_list())
        for i in range(blocks.shape[1]):
            live = lengths > np.uint64(i * BLOCK_BYTES)
            state[live] = _encrypt(secret, state[live] ^ blocks[live, i])
        return state

    def _mac_by_length(self, keys: pl.Series, lengths: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The same where one long key would have all others padded to its length: the shorter half by itself."""
        state, order = np.zeros((len(keys), 2), dtype=np.uint64), np.argsort(lengths, kind="stable")
        for some in (order[: len(order) // 2], order[len(order) // 2 :]):
            state[some] = self._mac(keys.gather(some))
        return state


def _chained(key: bytes, state: NDArray[np.uint64], texts: list[bytes]) -> NDArray[np.uint64]:
    """CBC-MAC of few long keys, each from its state."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    marks = []
    for start, text in zip(state.astype("<u8"), texts, strict=True):
        chain = Cipher(algorithms.AES(key), modes.CBC(start.tobytes())).encryptor()
        marks.append(chain.update(text.ljust(-(-len(text) // BLOCK_BYTES) * BLOCK_BYTES, b"\0"))[-BLOCK_BYTES:])
    return np.frombuffer(b"".join(marks), dtype="<u8").astype(np.uint64).reshape(-1, 2)


def _encrypt(key: bytes, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # one block per record: a keyed permutation
    data = encryptor.update(np.ascontiguousarray(blocks, dtype="<u8").data.cast("B")) if blocks.size else b""
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, 2)
