"""What is printed reads back, whatever text it holds; what cannot be read is said to be so."""

from __future__ import annotations

import pytest

from inductile.dialects.context import new_context
from inductile.dialects.reading import Reader
from inductile.errors import UserError
from inductile.passes.printing import module_text
from inductile.tools.source import Source

TEXTS = ["é", "\U0001f600", 'a"b', "back\\slash", "tab\tline\n", "\0\x7f", "\\FF", ""]

FORMS = {
    "target": 'kernel.func @k(%x: !kernel.buffer<f32, 4>) target {} {{\n  kernel.yield\n}}',
    "message": 'kernel.func @k(%x: !kernel.buffer<f32, 4>) errors [{}] {{\n  kernel.yield\n}}',
    "symbol": "kernel.func @{}(%x: !kernel.buffer<f32, 4>) {{\n  kernel.yield\n}}",
    "attribute": "func.func @f() attributes {{a = {}, {} = 1 : i64}} {{\n  func.return\n}}",
    "argument": 'func.func @f() {{\n  aten.call "aten::f"({}, {{{} = 1}})\n  func.return\n}}',
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", TEXTS)
def test_any_text_reads_back(form: str, text: str) -> None:
    if not text and form in ("symbol", "attribute"):
        pytest.skip("a name is not empty")
    quoted = '"' + "".join(f"\\{byte:02X}" for byte in text.encode()) + '"'
    first = module_text(Reader(new_context(), FORMS[form].replace("{}", quoted).format()).parse_module())
    assert module_text(Reader(new_context(), first).parse_module()) == first


def test_bytes_that_are_no_text_stay_bytes() -> None:
    text = module_text(
        Reader(new_context(), 'func.func @f() attributes {a = "\\FF\\FE"} {\n  func.return\n}').parse_module()
    )
    assert 'a = "\\FF\\FE"' in text
    assert module_text(Reader(new_context(), text).parse_module()) == text


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(UserError, match=r"f\.mlir:1:"):
        Source('func.func @"\\FF"() {\n  func.return\n}', "f.mlir").parse(new_context())


LOCATED = """builtin.module {
  func.func @f(%x: i1 loc(#loc1)) -> i1 {
    func.return %x : i1 loc(#loc2)
  } loc(#loc1)
}
#loc1 = loc("a.py":1:0)
#loc2 = loc(fused["a.py":2:0, "b#loc3 = loc(.py":4:0])
"""


def test_locations_stand_in_a_table_at_the_end() -> None:
    module = Reader(new_context(), LOCATED).parse_module()
    assert module_text(module, locations=True) == LOCATED.rstrip()
    assert "loc" not in module_text(module)
    assert (
        Reader(new_context(), LOCATED.replace("#loc1)", '"a.py":1:0)'))
        .parse_module()
        .is_structurally_equivalent(module)
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#loc2 = 5", "undefined symbol alias"),
        ("#loc3 = loc(unknown)", "undefined"),
        ("#loc2 = loc(", "location"),
        ("#loc1 = loc(unknown)", "re-declaration"),
    ],
)
def test_a_table_that_says_nothing_is_refused(line: str, message: str) -> None:
    text = "\n".join([*LOCATED.splitlines()[:-1], line])
    with pytest.raises(UserError, match=rf"f\.mlir:[1-7]:.*\n?.*{message}"):
        Source(text, "f.mlir").parse(new_context())


REGIONS = """func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {{
  %u = loop.generate (i0 in 4) {{
    %a = loop.load %x[i0]
    %m = loop.reduce max (r0 in 4) {{
      %b = loop.load %x[r0]
      loop.yield %b
    }}
    %s = arith.addf %a, %m : f32
    loop.yield %s
  }} : !aten.tensor<4xf32>
  %v = loop.generate (i0 in 4) {{
    %a = loop.load %u[i0]
    loop.yield {last}
  }} : !aten.tensor<4xf32>
  func.return %v : !aten.tensor<4xf32>
}}"""


def test_names_of_a_region_end_with_it() -> None:
    source = Source(REGIONS.format(last="%a"), "f")
    source.verify(source.parse(new_context()))
    for name in ("%s", "%b"):  # of the region in front, and of one inside it
        with pytest.raises(UserError, match=f"value {name} is used before it is defined"):
            Source(REGIONS.format(last=name), "f").parse(new_context())
