"""tau-ARGUS microdata (.asc) and tables (.tab, .sbs): fixed columns or a separator, described by an .rda file beside.

The metadata gives names, places, missing codes, code lists (.cdl, kept as value labels), hierarchies (.hrc, or by
digits) and roles: recodeable variables are keys, numeric ones numeric, the weight is the weight. Of a table it also
says which variable is the count, the largest contributions, the status or the levels, and the code of the total.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from equipoise.data.branches import Branch, ValueMapping
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.labels import Column, Labels, split_missing_codes
from equipoise.data.levels import is_number
from equipoise.data.roles import Roles
from equipoise.data.tables.axes import Axis
from equipoise.files.argus_metadata import ArgusMetadata, ArgusVariable, text_of
from equipoise.files.column_types import FLOATS, SIGNED, TEXTS, UNSIGNED, WIDE, ZONED, stored_as, to_text
from equipoise.files.format import Format, Loaded
from equipoise.files.missing_codes import two_codes
from equipoise.files.statistical import CODE_COLUMN_PREFIX, MAX_EXACT_INTEGER
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError
from equipoise.ground.system import file_name

LEADS = "@#~^|%"
"""Characters that say how deep a node of a hierarchy is: the first with which no code begins."""


def load(path: Path, *, metadata: str | Path | None = None) -> Loaded:
    """Read microdata by its metadata: the .rda named, of the same name, or the only one in the folder."""
    meta = ArgusMetadata.read(Path(metadata) if metadata else _beside(path))
    table = _separated_columns(path, meta) if meta.separator else _fixed_columns(path, meta)
    table = table.select(_typed(table[v.name], v) for v in meta.variables)
    labels = Labels({v.name: _column(v, meta) for v in meta.variables})
    table, labels = split_missing_codes(table, labels)
    return Loaded(table, labels, _roles(meta))


def load_table(path: Path, *, metadata: str | Path | None = None) -> Loaded:
    """Read a table, a row for each cell: `eq.table(..., ready=True)` knows from its metadata what the columns are.

    Codes for missing are categories here, below the total. A value of - is an empty cell.
    """
    meta = ArgusMetadata.read(Path(metadata) if metadata else _beside(path))
    table = _separated_columns(path, meta) if meta.separator else _fixed_columns(path, meta)
    variables = [replace(v, numeric=v.numeric or v.part in NUMERIC_PARTS) for v in meta.variables]
    table = table.select(_typed(_filled(table[v.name]) if v.number else table[v.name], v) for v in variables)
    letters = dict(meta.letters)
    table = table.with_columns(pl.col(v.name).replace(letters) for v in variables if v.part == "status" and letters)
    labels = Labels({v.name: replace(_column(v, meta), missing=(), measure=v.part, total=v.total) for v in variables})
    return Loaded(table, labels, _table_roles(variables, meta))


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write fixed columns, with the .rda and the code lists beside."""
    table = frame.collect()
    gaps = {n.removeprefix(CODE_COLUMN_PREFIX): table[n] for n in table.columns if n.startswith(CODE_COLUMN_PREFIX)}
    table = table.drop(n for n in table.columns if n.startswith(CODE_COLUMN_PREFIX))
    lines, metadata_lines, start = [], [], 1
    for values in table.get_columns():
        name = values.name
        column, codes = two_codes(labels.of(name), gaps.get(name), values)
        texts = to_text(values).str.replace_all(r"[\r\n]+", " ")
        if codes is not None:
            texts = pl.select(pl.coalesce(pl.lit(texts), pl.lit(_plain(codes)))).to_series()
        width = max(_longest(texts), column.width or 1)
        lines.append(texts.fill_null("").str.pad_start(width).alias(name))
        metadata_lines.append(_metadata_entry(path, values, column, start, width))
        start += width + 1
    rows = pl.DataFrame(lines).select(pl.concat_str(pl.all(), separator=" "))
    rows.write_csv(path, include_header=False, quote_style="never")
    path.with_suffix(".rda").write_text("\n".join(metadata_lines) + "\n", encoding="utf-8", newline="\n")


def metadata_files(axes: Sequence[Axis], stem: str) -> dict[str, str]:
    """The metadata and hierarchies that say what a table of labels, value, contributors and status number is, by file.

    A column whose groups overlap (several branches) has a hierarchy for each, of which tau-ARGUS knows only one.
    """
    files: dict[str, str] = {}
    metadata_lines = ['<SEPARATOR> ","']
    for axis in axes:
        metadata_lines += [f'"{axis.name}"', "  <RECODEABLE>", f'  <TOTCODE> "{axis.nodes[axis.total]}"']
        branches = [_nodes_below_total(axis, chain) for chain in axis.chains]
        branches = [nodes for nodes in branches if any(depth for depth, _ in nodes)]
        if branches:
            codes = [code for nodes in branches for _, code in nodes]
            lead = next((mark for mark in LEADS if not any(code.startswith(mark) for code in codes)), LEADS[0])
            metadata_lines += ["  <HIERARCHICAL>", f'  <HIERLEADSTRING> "{lead}"']
        for nodes in branches:
            name = f"{stem}_{len(files) + 1}.hrc"
            files[name] = "".join(f"{lead * depth}{code}\n" for depth, code in nodes)
            metadata_lines.append(f'  <HIERCODELIST> "{name}"')
    metadata_lines += ["value", "  <NUMERIC>", "contributors", "  <FREQUENCY>", "code", "  <STATUS>"]
    return {f"{stem}.rda": "".join(line + "\n" for line in metadata_lines), **files}


def _nodes_below_total(axis: Axis, chain: Sequence[Integers]) -> list[tuple[int, str]]:
    """The nodes of a branch below the total with their depth, each group before its parts."""
    labels = axis.nodes.to_list()
    paths = [dict.fromkeys(labels[int(n)] for n in reversed(leaf)) for leaf in zip(*chain, strict=True)]
    branches: dict[tuple[str, ...], None] = {}
    for path in sorted(tuple(path)[1:] for path in paths):
        branches |= {path[:depth]: None for depth in range(1, len(path) + 1)}
    return [(len(path) - 1, path[-1]) for path in sorted(branches)]


def _filled(values: pl.Series) -> pl.Series:
    return values.str.strip_chars().replace("-", "0")


def _table_roles(variables: list[ArgusVariable], meta: ArgusMetadata) -> Roles:
    """Recodeable variables are the columns of the table; the value is the numeric one that is nothing else."""
    trees = {v.name: _with_missing(tree, v) for v in variables if (tree := _tree(v, meta)) is not None}
    return Roles(
        tuple(v.name for v in variables if v.recodeable),
        numeric=tuple(v.name for v in variables if v.numeric and v.part is None),
        hierarchies=trees,
    )


def _with_missing(tree: Hierarchy, variable: ArgusVariable) -> Hierarchy:
    """The hierarchy with the codes for missing, each a group of its own."""
    return Hierarchy(tuple(_branch_with_missing(branch, variable) for branch in tree.branches))


def _branch_with_missing(branch: Branch, variable: ArgusVariable) -> Branch:
    if not isinstance(branch, ValueMapping):
        return branch
    leaf_codes, depth = {row[0] for row in branch.groups}, len(branch.groups[0])
    missing_rows = tuple((code,) * (depth - 1) for code in variable.missing if code not in leaf_codes)
    rest = branch.groups[0][-1:] if len({row[-1] for row in branch.groups}) == 1 else ()
    rows = (*branch.groups, *((*row, *(rest or row[:1])) for row in missing_rows))
    return replace(branch, groups=rows)


def _longest(texts: pl.Series) -> int:
    """The characters of the longest text."""
    lengths = texts.str.len_chars().drop_nulls().to_numpy()
    return int(lengths.max()) if len(lengths) else 1


def _metadata_entry(path: Path, values: pl.Series, column: Column, start: int, width: int) -> str:
    """One variable of the metadata, its code list written beside."""
    codes = " ".join(str(_number(low)) for low, _ in column.missing[:2])
    name = f'"{values.name}"' if " " in values.name else values.name
    lines = [f"{name} {start} {width} {codes}".rstrip()]
    if values.dtype.is_numeric():
        lines.append("  <WEIGHT>" if column.measure == "weight" else "  <NUMERIC>")
        decimals = (column.format or "").rpartition(".")[2]
        lines += [f"  <DECIMALS> {decimals}"] if decimals.isdecimal() and decimals != "0" else []
    else:
        lines.append("  <RECODEABLE>")
    if column.values:
        beside = path.with_name(file_name(f"{path.stem}_{start}_{values.name}.cdl"))
        listed = "".join(f"{_number(code)},{text}\n" for code, text in column.values)
        beside.write_text(listed, encoding="utf-8", newline="\n")
        lines.append(f'  <CODELIST> "{beside.name}"')
    return "\n".join(lines)


def _beside(path: Path) -> Path:
    same = path.with_suffix(".rda")
    candidates = [same] if same.is_file() else sorted(path.parent.glob("*.rda"))
    if len(candidates) != 1:
        raise DataError(
            f"{str(path)!r} needs its tau-ARGUS metadata, and there {'are several' if candidates else 'is no'} .rda "
            f"file{'s' if candidates else ''} beside it: name it with metadata=..."
        )
    return candidates[0]


def _fixed_columns(path: Path, meta: ArgusMetadata) -> pl.DataFrame:
    lines = pl.Series("line", text_of(path).splitlines(), dtype=pl.String)
    lines = lines.filter(lines.str.strip_chars() != "")
    last = max(v.start for v in meta.variables)
    short = (lines.str.len_chars() < last).arg_max() if (lines.str.len_chars() < last).any() else None
    if short is not None:
        raise DataError(f"Row {short + 1:,} of {str(path)!r} is shorter than its metadata says.")
    lengths = lines.str.len_chars().to_numpy()
    if len(lengths) > 2 and lengths[-1] < lengths[0] == lengths[:-1].min() == lengths[:-1].max():
        raise DataError(f"The last row of {str(path)!r} is shorter than all others: the file is cut off.")
    return pl.DataFrame([lines.str.slice(v.start - 1, v.width).alias(v.name) for v in meta.variables])


def _separated_columns(path: Path, meta: ArgusMetadata) -> pl.DataFrame:
    try:
        table = pl.read_csv(
            text_of(path).encode(), separator=meta.separator or ",", has_header=False, infer_schema=False
        )
    except Exception:
        raise DataError(f"{str(path)!r} cannot be split by the separator its metadata names.") from None
    if table.width != len(meta.variables):
        raise DataError(
            f"{str(path)!r} has {table.width:,} fields in a row, "
            f"and its metadata names {len(meta.variables):,} variables."
        )
    table.columns = [v.name for v in meta.variables]
    return table


def _typed(values: pl.Series, variable: ArgusVariable) -> pl.Series:
    texts = values.str.strip_chars()
    texts = pl.select(pl.when(pl.lit(texts) != "").then(pl.lit(texts)).alias(values.name)).to_series()
    if not variable.number:
        return texts
    numbers = texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    failures = int(numbers.null_count() - texts.null_count())
    if failures:
        raise DataError(f"{failures:,} values of column {values.name!r} are not numbers, though its metadata says so.")
    whole = not variable.decimals and bool((numbers.drop_nulls() % 1 == 0).all())
    return _integers(texts, numbers) if whole else numbers


def _integers(texts: pl.Series, numbers: pl.Series) -> pl.Series:
    """Whole numbers, from the text where floating point would round them."""
    exact = texts.cast(pl.Int128, strict=False)
    if exact.null_count() > texts.null_count():
        return numbers.cast(pl.Int64) if (numbers.drop_nulls().abs() <= MAX_EXACT_INTEGER).all() else numbers
    narrow = exact.cast(pl.Int64, strict=False)
    return narrow if narrow.null_count() == texts.null_count() else exact


def _column(variable: ArgusVariable, meta: ArgusMetadata) -> Column:
    codes = tuple(
        float(code) if variable.number else code for code in variable.missing if not variable.number or is_number(code)
    )
    return Column(
        values=meta.codes(variable),
        missing=tuple((code, code) for code in codes),
        format=f"F{variable.width}.{variable.decimals}" if variable.number else None,
        storage="double" if variable.number else "string",
        measure="weight" if variable.weight else None,
        width=variable.width or None,
    )


def _roles(meta: ArgusMetadata) -> Roles:
    weights = [v.name for v in meta.variables if v.weight]
    trees = {v.name: tree for v in meta.variables if (tree := _tree(v, meta)) is not None}
    return Roles(
        tuple(v.name for v in meta.variables if v.recodeable),
        numeric=tuple(v.name for v in meta.variables if v.numeric and not v.weight),
        weight=weights[0] if weights else None,
        hierarchies=trees,
    )


def _tree(variable: ArgusVariable, meta: ArgusMetadata) -> Hierarchy | None:
    if variable.hierarchy:
        files = (variable.hierarchy, *variable.overlapping)
        trees = [Hierarchy.hrc(meta.beside(file), lead=variable.lead) for file in files]
        return Hierarchy(
            tuple(_with_level_names(branch, i) for i, tree in enumerate(trees) for branch in tree.branches)
        )
    ends = [sum(variable.digits[: i + 1]) for i, n in enumerate(variable.digits) if n]
    return Hierarchy.prefix(*reversed(ends[:-1])) if len(ends) > 1 else None


def _with_level_names(branch: Branch, number: int) -> Branch:
    """A further branch, its levels with names of their own."""
    if not number or not isinstance(branch, ValueMapping):
        return branch
    return replace(branch, names=tuple(f"{number + 1}.{level.name}" for level in branch.levels()))


def _plain(codes: pl.Series) -> pl.Series:
    """Codes as text, whole numbers without decimals."""
    whole = codes.dtype.is_float() and bool((codes.drop_nulls() % 1 == 0).all())
    return (codes.cast(pl.Int64) if whole else codes).cast(pl.String)


def _number(code: float | str) -> float | int | str:
    return int(code) if isinstance(code, float) and code.is_integer() else code


NUMERIC_PARTS = ("frequency", "shadow", "cost", "largest", "lower", "upper")
"""What a table's metadata tells of variables that are numbers, whether it calls them numeric or not."""

FORMATS = (
    Format(
        name="asc",
        title="tau-ARGUS microdata",
        suffixes=(".asc",),
        load=load,
        save=save,
        types=stored_as("Int64", *SIGNED, *UNSIGNED, *WIDE)
        | stored_as("Float64", *FLOATS, "Decimal")
        | stored_as("String", "Boolean", *TEXTS, "Date", "Datetime", ZONED, "Time", "Null"),
        options=("metadata",),
        codes=True,
        alone=False,
    ),
    Format(
        name="tab",
        title="tau-ARGUS table",
        suffixes=(".tab", ".sbs"),
        load=load_table,
        options=("metadata",),
        becomes="csv",
        alone=False,
    ),
)
