"""The table of schemas and what is read from its lines."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from inductile.dialects.aten import SchemaError, op_class
from inductile.dialects.aten.schema import REQUIRED, parse_schema
from inductile.dialects.aten.table import TABLE, overload_names, schema_of


def test_arguments() -> None:
    schema = parse_schema(
        "f.x(Tensor(a!) self, Tensor?[] indices, SymInt[2]? size=[0, -1], *, Scalar alpha=1, float eps=1, "
        'str mode="a, \\"b\\"", ScalarType? dtype=4, Tensor? w=None) -> (Tensor(a!) out, Tensor[], SymInt) | core'
    )
    self, indices, size, alpha, eps, mode, dtype, w = schema.arguments
    assert (schema.name, schema.packet, schema.overload, schema.tags) == ("f.x", "f", "x", {"core"})
    assert (self.alias, self.writes, self.default) == ("a", True, REQUIRED)
    assert (indices.is_list, indices.optional, indices.optional_items) == (True, False, True)
    assert (size.kind, size.is_list, size.size, size.optional, size.default) == ("int", True, 2, True, (0, -1))
    assert size.is_symbolic
    assert (alpha.kwarg_only, alpha.default, w.optional, dtype.default) == (True, 1, True, "int64")
    assert type(eps.default) is float
    assert mode.default == 'a, "b"'
    assert [(r.kind, r.is_list) for r in schema.returns] == [("tensor", False), ("tensor", True), ("int", False)]
    assert schema.has_result_groups
    assert schema.is_mutable
    assert not schema.is_pure


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("add.Tensor", {"is_pure": True, "is_pointwise": True, "is_view": False}),
        ("view", {"is_pure": True, "is_view": True}),
        ("split.Tensor", {"is_view": True, "has_result_groups": False}),
        ("rand_like", {"is_pure": False, "is_random": True}),
        ("native_dropout", {"is_pure": False, "is_random": True}),
        ("copy_", {"is_pure": False, "is_mutable": True, "is_view": False}),
        ("_assert_async.msg", {"is_pure": False, "is_random": False}),
    ],
)
def test_facts(name: str, facts: dict[str, bool]) -> None:
    schema = schema_of(name)
    assert schema is not None
    assert {fact: getattr(schema, fact) for fact in facts} == facts


@pytest.mark.parametrize("line", ["f", "f(Tensor x)", "f(Dict(str, t) x) -> Tensor", "f(Tensor x) -> Whatever"])
def test_malformed_lines_are_refused(line: str) -> None:
    with pytest.raises(SchemaError):
        parse_schema(line)


def test_every_line_makes_a_class() -> None:
    names = list(overload_names())
    assert len(names) > 2000
    for name in names:
        cls = op_class(f"aten.{name}")
        assert cls is not None and cls.name == f"aten.{name}"


def test_unknown_names_have_no_class() -> None:
    assert op_class("aten.no_such_op") is None
    assert op_class("aten.add.NoSuchOverload") is None
    assert op_class("loop.load") is None


def test_table_agrees_with_the_installed_torch() -> None:
    """The same lines; of another version than the table's, the same but for what that version changed."""
    torch = pytest.importorskip("torch")
    from inductile.tools.generate_aten_schemas import schema_lines

    text = TABLE.read_text()
    version = re.search(r"from torch (\S+)\.", text)
    assert version is not None
    stored, made = set(text.splitlines()[2:]), set(schema_lines())
    if torch.__version__.startswith(version[1]):
        assert stored == made
    assert len(stored ^ made) < 0.1 * len(stored)


def test_finding_an_op_loads_no_torch_and_few_schemas() -> None:
    script = (
        "import sys; from inductile.dialects.aten import op_class, table\n"
        "op_class('aten.add.Tensor'); print('torch' in sys.modules, table._parse.cache_info().currsize)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "False 1\n"
