"""The general matrix mask."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import floats, numeric_columns, times
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import together
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, require_columns
from equipoise.ground.packed_keys import code, group_coded
from equipoise.ground.randomness import Draws
from equipoise.masks._tail_code import integer_ends
from equipoise.methods.parameters import check_fields, share

OPERATIONS = ("sums", "means", "sample")


@dataclass(frozen=True, slots=True)
class Matrix:
    """Release M = A X B + C in place of X, the records of the numeric `columns`.

    `A` transforms records (n columns, any number of rows) and is one of

    - a SciPy sparse matrix or NumPy array, or the path of one (`.npz` by `scipy.sparse.save_npz`, or `.npy`);
    - "sums:area": one record for each combination of the columns named ("area+sex"), the sum of its records;
    - "means:area": every record gets the mean of its group (microaggregation, where the column numbers the groups);
    - "sample:0.1": a simple random sample of that share of the records, drawn by record;
    - pairs of record numbers from 0, ((0, 3), (1, 2)): transpositions, in that order, each with probability `rate`.

    `B` transforms columns (a row for each of `columns`; recoding, projection): rows of numbers, an array or a path.
    When it has another number of columns, `outputs` names them. `C` is added: a number, one number for each released
    column, an array or a path. What is left out is the identity, and 0.

    The other columns stay as they are where A has as many rows as columns (transpositions move X alone), follow their
    record where A takes fewer records as they are (sampling), and are dropped where it mixes them, but for those that
    "sums" groups by; roles of dropped columns go with them. A result is missing where anything it is made of is.
    Columns of whole numbers stay so where the result is whole. Arrays follow the order of records in the file;
    operations do not depend on it. Cost: O(non-zeros of A x columns), all records in memory.

    Noise (C), swapping (transpositions, or A sparse), microaggregation (means) and sampling are instances.
    Source: Duncan and Pearson (1991), *Enhancing access to microdata while protecting confidentiality*; Duncan and
    Keller-McNulty (2000), sect. 2.2.
    Does not guard against anything by itself: A, B and C decide. An intruder who knows them solves for X as far as
    their rank allows.

    >>> Matrix(B=((0.5,), (0.5,)), outputs=["both"], columns=["wage", "rent"]).words()
    'wage, rent replaced by A X B + C: B of 2 x 1'
    """

    A: Any = None
    B: Any = None
    C: Any = None
    columns: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        share(self.rate, "rate, a probability,")
        object.__setattr__(self, "A", _operator(self.A))
        object.__setattr__(self, "B", _table(self.B, "B"))
        object.__setattr__(self, "C", _added(self.C))
        if self.rate != 1 and not _transposes(self.A):
            raise ParameterError("rate is the probability of transpositions: give pairs of record numbers as A.")

    def apply(self, data: Records, draws: Draws) -> Records:
        columns = numeric_columns(data, self.columns)
        table, keys = together(data)
        a = self._operator(table, keys, draws)
        right = _array(self.B) if self.B is not None else np.eye(len(columns))
        outputs = self._outputs(columns, right)
        x = floats(table, columns)
        gaps = np.isnan(x)
        product = times(_from_left(a, np.where(gaps, 0.0, x)), right)
        gaps_out = times(_from_left(_pattern(a), gaps.astype(np.float64)), (right != 0).astype(np.float64)) > 0
        product = np.where(gaps_out, np.nan, product + _fitting(self.C, product.shape))
        table_out = _masked_table(self._others(table, a), columns, outputs, product, table)
        released = data.with_frame(table_out, self.law(columns, outputs))
        return replace(released, roles=data.roles.only(table_out.columns))

    def law(self, columns: tuple[str, ...], outputs: tuple[str, ...]) -> Law:
        parameters = {"columns": list(columns), "outputs": list(outputs)}
        forms = {name: form for name in "ABC" if (form := _form(getattr(self, name)))}
        rate = {"rate": self.rate} if self.rate != 1 else {}
        return Law("matrix", outputs, self.words(), parameters | forms | rate, detail=self)

    def words(self) -> str:
        forms = [f"{name} {form}" for name in "ABC" if (form := _form(getattr(self, name)))]
        columns = ", ".join(self.columns or ()) or "the numeric columns"
        return f"{columns} replaced by A X B + C: {', '.join(forms) or 'the identity'}"

    def _operator(self, table: pl.DataFrame, keys: pl.Series, draws: Draws) -> Any:
        """A as a sparse matrix; None for the identity."""
        if self.A is None:
            return None
        if _transposes(self.A):
            return _selection(_transposed(self.A, table.height, self.rate, draws), table.height)
        if isinstance(self.A, str) and self.A.partition(":")[0] in OPERATIONS:
            return _operation(self.A, table, keys, draws)
        matrix = _sparse(self.A)
        if matrix.shape[1] != table.height:
            raise DataError(f"A has {matrix.shape[1]:,} columns for {table.height:,} records.")
        return matrix

    def _outputs(self, columns: tuple[str, ...], right: Floats) -> tuple[str, ...]:
        if right.shape[0] != len(columns):
            raise ParameterError(f"B has {right.shape[0]} rows for {len(columns)} columns.")
        outputs = self.outputs or columns
        if len(outputs) != right.shape[1]:
            raise ParameterError(f"B makes {right.shape[1]} columns: name as many in outputs.")
        return outputs

    def _others(self, table: pl.DataFrame, a: Any) -> pl.DataFrame:
        """The columns that are not masked, for the rows of A."""
        name = self.A.partition(":")[0] if isinstance(self.A, str) else ""
        if a is None or (a.shape[0] == a.shape[1] and name != "sample"):
            return table
        if name == "sums":
            by = _by(self.A, table)
            return table[group_coded([code(table[c]) for c in by])[1].astype(np.int64)].select(by)
        one_each = a.shape[0] == a.nnz and (np.diff(a.indptr) == 1).all() and (a.data == 1).all()
        return table[a.indices.astype(np.int64)] if one_each else pl.DataFrame()


class FrozenArray:
    """An array held by a mask: equal where its numbers are, shown by its shape."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @cached_property
    def mark(self) -> str:
        parts = (self.array.data, self.array.indices, self.array.indptr) if _is_sparse(self.array) else (self.array,)
        digest = hashlib.sha256(str(self.array.shape).encode())
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenArray) and self.mark == other.mark

    def __hash__(self) -> int:
        return hash(self.mark)

    def __repr__(self) -> str:
        return " x ".join(map(str, self.array.shape))


def _is_sparse(value: Any) -> bool:
    return hasattr(value, "tocsr")


def _transposes(value: Any) -> bool:
    return isinstance(value, tuple)


def _operator(value: Any) -> Any:
    """A as it is kept: None, text, pairs, or an array held."""
    if value is None or isinstance(value, FrozenArray):
        return value
    if isinstance(value, str):
        return _text(value)
    if _is_sparse(value):
        return FrozenArray(value.tocsr().astype(np.float64))
    if isinstance(value, np.ndarray):
        return _frozen(value, "A")
    pairs = tuple(tuple(pair) if isinstance(pair, tuple | list) else () for pair in value) if _several(value) else ((),)
    if any(len(pair) != 2 or any(not isinstance(i, int) or i < 0 for i in pair) for pair in pairs):
        raise ParameterError("A must be a matrix, its path, an operation, or pairs of record numbers from 0.")
    return pairs


def _text(text: str) -> str:
    """A path or an operation."""
    name, mark, rest = text.partition(":")
    if name == "sample" and mark:
        try:
            share(float(rest), "A: the share to sample")
        except ValueError as error:
            raise (error if isinstance(error, ParameterError) else ParameterError("A: write 'sample:0.1'.")) from None
    elif not (name in OPERATIONS and rest) and Path(text).suffix not in (".npz", ".npy"):
        raise ParameterError(
            "A as text is a path that ends in .npz or .npy, or 'sums:column', 'means:column' or 'sample:0.1'."
        )
    return text


def _table(value: Any, name: str) -> Any:
    """B as it is kept: None, a path, rows of numbers, or an array held."""
    if value is None or isinstance(value, FrozenArray):
        return value
    if isinstance(value, str):
        if Path(value).suffix not in (".npz", ".npy"):
            raise ParameterError(f"{name} as text is a path that ends in .npz or .npy.")
        return value
    if _is_sparse(value) or isinstance(value, np.ndarray):
        return _frozen(value.toarray() if _is_sparse(value) else value, name)
    rows = tuple(tuple(row) if isinstance(row, tuple | list) else () for row in value) if _several(value) else ((),)
    if len({len(row) for row in rows}) != 1 or not rows[0] or not all(_finite(v) for row in rows for v in row):
        raise ParameterError(f"{name} must be rows of finite numbers, all of one length.")
    return tuple(tuple(float(v) for v in row) for row in rows)


def _added(value: Any) -> Any:
    """C as it is kept: None, a number, a number for each column, or what B may be."""
    if isinstance(value, int | float) and _finite(value):
        return float(value)
    if _several(value) and all(_finite(v) for v in value):
        return tuple(float(v) for v in value)
    return _table(value, "C")


def _several(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _frozen(array: Any, name: str) -> FrozenArray:
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise ParameterError(f"{name} must be a matrix of finite numbers.")
    return FrozenArray(np.array(array, dtype=np.float64))


def _loaded(path: str) -> Any:
    """A matrix from a file, sparse or dense."""
    import scipy.sparse

    try:
        return scipy.sparse.load_npz(path) if path.endswith(".npz") else np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise ParameterError(f"No file at {path!r}.") from None
    except (OSError, ValueError, KeyError):
        raise ParameterError(f"{path!r} holds no matrix: write it with scipy.sparse.save_npz or numpy.save.") from None


def _sparse(source: Any) -> Any:
    import scipy.sparse

    matrix = _loaded(source) if isinstance(source, str) else source.array
    return scipy.sparse.csr_matrix(matrix, dtype=np.float64)


def _array(source: Any) -> Floats:
    matrix = _loaded(source) if isinstance(source, str) else source.array if isinstance(source, FrozenArray) else source
    return np.asarray(matrix.toarray() if _is_sparse(matrix) else matrix, dtype=np.float64)


def _fitting(source: Any, shape: tuple[int, ...]) -> Floats:
    """C in the shape of the result."""
    if source is None:
        return np.zeros(shape)
    addend = np.asarray(source, dtype=np.float64) if isinstance(source, float) else _array(source)
    try:
        return np.broadcast_to(addend, shape)
    except ValueError:
        raise DataError(
            f"C has the shape {' x '.join(map(str, addend.shape))}; the result has {shape[0]:,} x {shape[1]}."
        ) from None


def _transposed(pairs: tuple[tuple[int, int], ...], size: int, rate: float, draws: Draws) -> Integers:
    """Where each row comes from after the transpositions that were drawn, the first pair applied first."""
    if max(max(pair) for pair in pairs) >= size:
        raise DataError(f"A names record {max(max(pair) for pair in pairs):,}; there are {size:,}, from 0.")
    source = np.arange(size)
    swaps = draws.uniform(pl.Series(np.arange(len(pairs)))) < rate
    for (i, j), swapped in zip(pairs, swaps, strict=True):
        if swapped:
            source[i], source[j] = source[j], source[i]
    return source


def _selection(source: Integers, size: int) -> Any:
    """The matrix that takes these records."""
    import scipy.sparse

    return scipy.sparse.csr_matrix((np.ones(len(source)), source, np.arange(len(source) + 1)), (len(source), size))


def _operation(text: str, table: pl.DataFrame, keys: pl.Series, draws: Draws) -> Any:
    import scipy.sparse

    name, _, rest = text.partition(":")
    if name == "sample":
        number = max(1, round(float(rest) * table.height))
        rows = np.argsort(draws.uniform(keys), kind="stable")[:number]
        return _selection(np.sort(rows), table.height)
    groups, first = group_coded([code(table[c]) for c in _by(text, table)])
    every = np.arange(table.height)
    sums = scipy.sparse.csr_matrix((np.ones(table.height), (groups, every)), (len(first), table.height))
    if name == "sums":
        return sums
    size = np.bincount(groups)
    spread = scipy.sparse.csr_matrix((1 / size[groups], (every, groups)), (table.height, len(first)))
    return _Means(spread, sums)


class _Means:
    """Block averaging as the product of two thin matrices: its n x n form could have n^2 places."""

    def __init__(self, spread: Any, sums: Any) -> None:
        self.spread, self.sums = spread, sums
        self.shape = (spread.shape[0], sums.shape[1])

    def __matmul__(self, other: Floats) -> Floats:
        return self.spread @ (self.sums @ other)


def _by(text: str, table: pl.DataFrame) -> list[str]:
    columns = text.partition(":")[2].split("+")
    require_columns(columns, table.columns)
    return columns


def _pattern(a: Any) -> Any:
    """Which records each row of A is made of."""
    return a if a is None or isinstance(a, _Means) else abs(a.sign())


def _from_left(a: Any, x: Floats) -> Floats:
    return x if a is None else a @ x


def _masked_table(
    others: pl.DataFrame, columns: tuple[str, ...], outputs: tuple[str, ...], values: Floats, table: pl.DataFrame
) -> pl.DataFrame:
    """The released table: masked columns in their place, new ones at the end."""
    dropped = [c for c in columns if c not in outputs]
    clash = [c for c in outputs if c in table.columns and c not in columns]
    if clash:
        raise ParameterError(f"outputs names {clash[0]!r}, a column that is there already.")
    new = [_series(c, values[:, i], table.schema.get(c)) for i, c in enumerate(outputs)]
    remaining = others.drop(dropped, strict=False)
    return remaining.with_columns(new) if remaining.width else pl.DataFrame(new)


def _series(name: str, values: Floats, dtype: pl.DataType | None) -> pl.Series:
    """The column's own type where it can hold the result."""
    column = pl.Series(name, values).fill_nan(None)
    if dtype is None or not (dtype.is_integer() or dtype.is_float()):
        return column
    if dtype.is_float():
        return column.cast(dtype)
    present = values[~np.isnan(values)]
    low, high = integer_ends(dtype)
    fits = (present == np.rint(present)).all() and (present >= low).all() and (present <= high).all()
    return column.cast(dtype, strict=False) if fits else column


def _form(value: Any) -> str:
    """A part of the mask in words: its form, never its numbers."""
    if value is None:
        return ""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, float):
        return f"= {value:g}"
    if isinstance(value, FrozenArray):
        return f"of {value!r}"
    if isinstance(value[0], float):
        return f"of {len(value)} numbers"
    if isinstance(value[0][0], int):
        return f"of {len(value)} transpositions"
    return f"of {len(value)} x {len(value[0])}"
