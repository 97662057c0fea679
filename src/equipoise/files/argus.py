"""tau-ARGUS microdata (.asc): fixed columns or a separator, told by an .rda file of metadata beside it.

The metadata gives names, places, missing codes, code lists (.cdl, kept as value labels), hierarchies (.hrc, or by
digits) and roles: recodeable variables are keys, numeric ones numeric, the weight is the weight.
"""

from pathlib import Path

import polars as pl

from equipoise.core.errors import DataError
from equipoise.core.hierarchy import Hierarchy
from equipoise.core.labels import Column, Labels, parted
from equipoise.core.roles import Roles
from equipoise.files.format import Format, Loaded
from equipoise.files.metadata import Meta, Variable, text_of
from equipoise.files.statistical import GAP


def load(path: Path, *, metadata: str | Path | None = None) -> Loaded:
    """Read microdata by its metadata: the .rda named, of the same name, or the only one in the folder."""
    meta = Meta.read(Path(metadata) if metadata else _beside(path))
    table = _separated(path, meta) if meta.separator else _fixed(path, meta)
    table = table.select(_typed(table[v.name], v) for v in meta.variables)
    labels = Labels({v.name: _column(v, meta) for v in meta.variables})
    table, labels = parted(table, labels)
    return Loaded(table, labels, _roles(meta))


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """Write fixed columns, with the .rda and the code lists beside."""
    table = frame.collect()
    gaps = {n.removeprefix(GAP): table[n] for n in table.columns if n.startswith(GAP)}
    table = table.drop(n for n in table.columns if n.startswith(GAP))
    lines, said, start = [], [], 1
    for values in table.get_columns():
        name, told = values.name, labels.of(values.name)
        texts = values.cast(pl.String)
        if name in gaps:
            texts = pl.select(pl.coalesce(pl.lit(texts), pl.lit(_plain(gaps[name])))).to_series()
        width = max(_longest(texts), told.width or 1)
        lines.append(texts.fill_null("").str.pad_start(width).alias(name))
        said.append(_said(path, values, told, start, width))
        start += width + 1
    rows = pl.DataFrame(lines).select(pl.concat_str(pl.all(), separator=" "))
    rows.write_csv(path, include_header=False, quote_style="never")
    path.with_suffix(".rda").write_text("\n".join(said) + "\n", encoding="utf-8", newline="\n")


def _longest(texts: pl.Series) -> int:
    """The characters of the longest text."""
    lengths = texts.str.len_chars().drop_nulls().to_numpy()
    return int(lengths.max()) if len(lengths) else 1


def _said(path: Path, values: pl.Series, told: Column, start: int, width: int) -> str:
    """One variable of the metadata, its code list written beside."""
    codes = " ".join(str(_number(low)) for low, _ in told.missing[:2])
    lines = [f"{values.name} {start} {width} {codes}".rstrip()]
    if values.dtype.is_numeric():
        lines.append("  <WEIGHT>" if told.measure == "weight" else "  <NUMERIC>")
        decimals = (told.format or "").rpartition(".")[2]
        lines += [f"  <DECIMALS> {decimals}"] if decimals.isdecimal() and decimals != "0" else []
    else:
        lines.append("  <RECODEABLE>")
    if told.values:
        beside = path.with_name(f"{path.stem}_{values.name}.cdl")
        listed = "".join(f"{_number(code)},{text}\n" for code, text in told.values)
        beside.write_text(listed, encoding="utf-8", newline="\n")
        lines.append(f'  <CODELIST> "{beside.name}"')
    return "\n".join(lines)


def _beside(path: Path) -> Path:
    same = path.with_suffix(".rda")
    found = [same] if same.is_file() else sorted(path.parent.glob("*.rda"))
    if len(found) != 1:
        raise DataError(
            f"{str(path)!r} needs its tau-ARGUS metadata: there {'is no' if not found else 'are several'} .rda "
            f"file{'s' if found else ''} beside it. Name it with metadata=..."
        )
    return found[0]


def _fixed(path: Path, meta: Meta) -> pl.DataFrame:
    lines = pl.Series("line", text_of(path).splitlines(), dtype=pl.String)
    lines = lines.filter(lines.str.strip_chars() != "")
    last = max(v.start for v in meta.variables)
    short = (lines.str.len_chars() < last).arg_max() if (lines.str.len_chars() < last).any() else None
    if short is not None:
        raise DataError(f"Row {short + 1:,} of {str(path)!r} is shorter than its metadata says.")
    return pl.DataFrame([lines.str.slice(v.start - 1, v.width).alias(v.name) for v in meta.variables])


def _separated(path: Path, meta: Meta) -> pl.DataFrame:
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


def _typed(values: pl.Series, variable: Variable) -> pl.Series:
    texts = values.str.strip_chars()
    texts = pl.select(pl.when(pl.lit(texts) != "").then(pl.lit(texts)).alias(values.name)).to_series()
    if not variable.number:
        return texts
    numbers = texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    lost = int(numbers.null_count() - texts.null_count())
    if lost:
        raise DataError(f"{lost:,} values of column {values.name!r} are not numbers, though its metadata says so.")
    whole = not variable.decimals and bool((numbers.drop_nulls() % 1 == 0).all())
    return numbers.cast(pl.Int64) if whole else numbers


def _column(variable: Variable, meta: Meta) -> Column:
    codes = tuple(
        float(code) if variable.number else code for code in variable.missing if not variable.number or _is(code)
    )
    return Column(
        values=meta.codes(variable),
        missing=tuple((code, code) for code in codes),
        format=f"F{variable.width}.{variable.decimals}" if variable.number else None,
        storage="double" if variable.number else "string",
        measure="weight" if variable.weight else None,
        width=variable.width or None,
    )


def _roles(meta: Meta) -> Roles:
    weights = [v.name for v in meta.variables if v.weight]
    trees = {v.name: tree for v in meta.variables if (tree := _tree(v, meta)) is not None}
    return Roles(
        tuple(v.name for v in meta.variables if v.recodeable),
        numeric=tuple(v.name for v in meta.variables if v.numeric and not v.weight),
        weight=weights[0] if weights else None,
        hierarchies=trees,
    )


def _tree(variable: Variable, meta: Meta) -> Hierarchy | None:
    if variable.hierarchy:
        return Hierarchy.from_hrc(meta.beside(variable.hierarchy), lead=variable.lead)
    ends = [sum(variable.digits[: i + 1]) for i, n in enumerate(variable.digits) if n]
    return Hierarchy.prefix(*reversed(ends[:-1])) if len(ends) > 1 else None


def _plain(codes: pl.Series) -> pl.Series:
    """Codes as text, whole numbers without decimals."""
    whole = codes.dtype.is_float() and bool((codes.drop_nulls() % 1 == 0).all())
    return (codes.cast(pl.Int64) if whole else codes).cast(pl.String)


def _number(code: float | str) -> float | int | str:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _is(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


FORMAT = Format((".asc",), load, save, ("metadata",), codes=True)
