"""Reads the rows of a model in all forms, with what people use, and compares each value with the engine's own text.

    forms.py URL    # of the resources of kind `model`: `kinds`, `plain`, and the engine's text of both, `kinds_told`, `plain_told`
"""

import csv
import datetime
import decimal
import io
import json
import sys
import urllib.request
import uuid

import openpyxl
import pandas
import pyarrow
import pyarrow.ipc
import pyarrow.parquet

URL = sys.argv[1]
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
NESTED = {"list", "row", "map"}
FLOATS = {"x"}


def fetch(model, media):
    request = urllib.request.Request(f"{URL}/{model}/rows", headers={"Accept": media})
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Type"] == media, answer.headers["Content-Type"]
        return answer.read()


def lines(model):
    return [json.loads(line) for line in fetch(model, "application/x-ndjson").splitlines()]


def time_text(value):
    """The engine's text of a time, without the zeros at the end of a fraction."""
    text = value.replace(tzinfo=None)
    text = text.isoformat(sep=" ") if isinstance(value, datetime.datetime) else text.isoformat()
    text = text.rstrip("0") if "." in text else text
    return text + ("+00" if value.tzinfo else "")


def text(value):
    """The engine's text of a value of Python."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case bytes():
            return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in value)
        case datetime.datetime() | datetime.time():
            return time_text(value)
        case datetime.date():
            return value.isoformat()
        case decimal.Decimal():
            return format(value, "f")
        case uuid.UUID() | int() | str():
            return str(value)
        case float():
            return repr(value)
    raise AssertionError(f"a value of {type(value)}")


def plain(value):
    """A nested value of Python as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) for one in value):
            return {str(key): plain(one) for key, one in value}
        return [plain(one) for one in value]
    return value


def same(column, told, value):
    """True if a value is that of the engine's text."""
    told = None if column in NESTED and told == "null" else told
    if told is None or value is None:
        return told is value
    if column in NESTED:
        value = json.loads(value) if isinstance(value, str) else plain(value)
        return value == json.loads(told)
    if column in FLOATS:
        return repr(float(value)) == repr(float(told))
    return text(value) == told


def compare(form, model, rows, empty_is_null=False, columns=None):
    told = lines(f"{model}_told")
    assert len(rows) == len(told), f"{form}: {len(rows)} rows, and {len(told)} in the engine"
    for row, expected in zip(rows, told):
        assert list(row) == list(expected), f"{form}: {list(row)}"
        for column, want in expected.items():
            if columns is not None and column not in columns:
                continue
            got = row[column]
            if empty_is_null and want in (None, ""):
                ok = got in (None, "")
            else:
                ok = same(column, want, got)
            assert ok, f"{form}, column {column}: {got!r}, and in the engine {want!r}"
    print(f"{form}: {len(rows)} rows agree")


def from_json(model):
    document = json.loads(fetch(model, "application/json"))
    assert document["truncated"] is False
    names = [column["name"] for column in document["columns"]]
    return [dict(zip(names, row)) for row in document["rows"]]


def from_csv(model):
    return list(csv.DictReader(io.StringIO(fetch(model, "text/csv").decode(), newline="")))


def from_arrow(model):
    with pyarrow.ipc.open_stream(fetch(model, "application/vnd.apache.arrow.stream")) as stream:
        return stream.read_all().to_pylist()


def from_parquet(model):
    return pyarrow.parquet.read_table(io.BytesIO(fetch(model, "application/vnd.apache.parquet"))).to_pylist()


def sheet_value(column, value):
    """A cell as the engine's types have it: sheets have one kind of numbers, and days with times."""
    if isinstance(value, datetime.datetime) and column == "day":
        return value.date()
    if isinstance(value, datetime.datetime) and column == "zoned":
        return value.replace(tzinfo=datetime.timezone.utc)
    return value


def from_sheet(model):
    sheet = openpyxl.load_workbook(io.BytesIO(fetch(model, SHEET)), read_only=True).active
    head, *rows = sheet.iter_rows(values_only=True)
    return [{name: sheet_value(name, value) for name, value in zip(head, row)} for row in rows]


for model in ["kinds", "plain"]:
    compare("JSON", model, from_json(model))
    compare("JSON lines", model, lines(model))
    compare("CSV", model, from_csv(model), empty_is_null=True)
    compare("Arrow", model, from_arrow(model))
compare("Parquet", "plain", from_parquet("plain"))
sheet = from_sheet("plain")
for row in sheet:
    # Sheets hold numbers of 15 digits, and know no scale.
    for column in ["id", "fraction"]:
        number = row[column]
        row[column] = number if number is None else f"{decimal.Decimal(str(number)):.{3 if column == 'fraction' else 0}f}"
# Nor do they hold microseconds.
compare("XLSX", "plain", sheet, empty_is_null=True, columns=set(sheet[0]) - {"moment"})

frame = pandas.read_csv(io.BytesIO(fetch("plain", "text/csv")))
assert len(frame) == len(lines("plain")), frame
frame = pyarrow.ipc.open_stream(fetch("plain", "application/vnd.apache.arrow.stream")).read_pandas()
assert frame["big"].iloc[0] == 9007199254740993, frame["big"]
print("done")
