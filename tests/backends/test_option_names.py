"""Options that people bring from TorchInductor: every name is known, and those with a meaning have it."""

from __future__ import annotations

import dataclasses
import json
import operator
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor import config as inductor

import inductile
from inductile.backends import option_names as table
from inductile.backends.compiled import REPORTS
from inductile.backends.config import Config
from inductile.backends.option_names import REFUSED, SAME, TRANSLATED, option_names
from inductile.backends.torch_settings import TOLD_WHEN_SET, torch_settings
from inductile.errors import UserError
from inductile.tools.option_page import page

ROOT = Path(__file__).parents[2]
DEFAULTS = inductor.get_config_copy()
NAMES = option_names()
FIELDS = {f.name for f in dataclasses.fields(Config)}


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_told", set())


def test_table_has_every_name_of_this_torch() -> None:
    names = {*getattr(inductor, "_config", DEFAULTS), *DEFAULTS}
    assert sorted(names - set(NAMES)) == [], "give each a verdict in backends/option_names.toml"


def test_table_says_each_thing_once_and_names_options_that_there_are() -> None:
    text = (ROOT / "backends" / "option_names.toml").read_text()
    words = [word for each in text.split('names = """')[1:] for word in each.split('"""')[0].split()]
    assert [name for name, count in Counter(words).items() if count > 1] == []
    same = {each.name.removeprefix("triton.") for each in NAMES.values() if each.verdict == SAME}
    assert same - FIELDS == set()
    assert {name for each in NAMES.values() for given in each.when.values() for name in given} - FIELDS == set()
    shared = {name for name in FIELDS if name in NAMES or f"triton.{name}" in NAMES}
    assert shared - same == {"memory_pool"}  # whose words are translated


def test_every_default_of_torch_is_accepted_without_a_word() -> None:
    """And changes nothing but what this machine's number of cores says."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = Config.resolve(None, {name: value for name, value in DEFAULTS.items() if name in NAMES})
    assert dataclasses.replace(config, compile_threads=0) == Config()


def test_options_without_effect_are_told_of_once() -> None:
    options = {"max_fusion_size": 3, "aggressive-fusion": True, "nan_asserts": True, "cpp.simdlen": 8}
    with pytest.warns(UserWarning, match=r"without effect: max_fusion_size, aggressive_fusion \(what is fused") as told:
        Config.resolve(None, options)
    assert len(told) == 1 and "nan_asserts (NaN is not looked for" in str(told[0].message)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Config.resolve(None, options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"force_disable_caches": True}, {"cache": False}),
        ({"pattern_matcher": False}, {"patterns": "none"}),
        ({"align_random_eager": True}, {"fallback_random": True}),
        ({"memory_pool": "none"}, {"memory_pool": False}),
        ({"memory_pool": "combined"}, {}),
        ({"split_reductions": False, "layout_optimization": False, "disabled_passes": "loop-cse"},
         {"disabled_passes": "loop-split-reductions,loop-channels-last,loop-cse"}),
        ({"trace.enabled": True, "trace.debug_dir": "x"}, {"trace_enabled": True, "trace_debug_dir": "x"}),
        ({"max_autotune_gemm": True, "batch_invariant": False}, {"max_autotune": True}),
    ],
)  # fmt: skip
def test_translated(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert Config.resolve(None, options) == dataclasses.replace(Config(), **expected)


def test_refused_names_say_what_to_do() -> None:
    for each in [each for each in NAMES.values() if each.verdict == REFUSED]:
        value = each.values[0] if each.values else "accuracy"
        with pytest.raises(UserError, match=f"'{each.name}' would change results: .*; .*(fallback_by_default|insert)"):
            Config.resolve(None, {each.name: value})


@pytest.mark.parametrize(
    ("typo", "expected"),
    [("max_autotun", "did you mean 'max_autotune'[?]"), ("verify_eac", "did you mean 'verify_each'[?]"),
     ("max_fusion_siz", "did you mean 'max_fusion_size'[?]"),
     ("MAX_AUTOTUNE", "did you mean 'max_autotune'[?]"), ("partitio", "'partition', or TorchInductor's '.*partit")],
)  # fmt: skip
def test_typos_name_the_nearest_of_both_lists(typo: str, expected: str) -> None:
    with pytest.raises(UserError, match=f"unknown option '{typo}'; .*{expected}"):
        inductile.backend(**{typo: True})


def test_options_and_modes_are_checked_at_once_or_before_any_work() -> None:
    with pytest.raises(UserError, match="unknown mode 'max-autotun'; did you mean 'max-autotune'"):
        inductile.backend("max-autotun")
    late = torch.compile(lambda x: x + 1, backend="inductile", options={"max_autotun": True})
    before = len(REPORTS)
    with pytest.raises(Exception, match=r"unknown option 'max_autotun'; did you mean 'max_autotune'"):
        late(torch.ones(2))
    assert len(REPORTS) == before


def test_list_options_marks_ours_and_theirs() -> None:
    shown = inductile.list_options()
    assert set(NAMES) <= set(shown) and all(text.startswith("[") for text in shown.values())
    assert shown["verify_each"].startswith("[inductile] ") and shown["triton.cudagraphs"].startswith("[both] ")
    assert shown["pattern_matcher"].startswith("[translated] ") and shown["nan_asserts"].startswith("[without effect] ")


def test_printed_options_are_those_that_do_something() -> None:
    shown = inductile.list_options()
    lines = str(shown).splitlines()
    without = sum(text.startswith("[without effect]") for text in shown.values())
    assert len(lines) == len(shown) - without + 1 and lines[-1].startswith(f"and {without} names")
    assert not any("[without effect]" in line for line in lines)


def test_numbers_of_threads_are_checked() -> None:
    with pytest.raises(UserError, match="'compile_threads' is -2; it takes 0 or more"):
        Config.resolve(None, {"compile_threads": -2})
    with pytest.raises(UserError, match="it takes an int"):
        Config.resolve(None, {"compile_threads": "two"})


def test_page_is_made_from_the_tables() -> None:
    written = (ROOT / "docs" / "options.md").read_text()
    assert written == page(), "run `python -m inductile.tools.option_page docs/options.md`"


@pytest.fixture
def reset() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def settings(**changed: Any) -> Config:
    with inductor.patch(changed):
        return Config.resolve(None, {}, torch_settings())


def test_what_torch_is_configured_with() -> None:
    assert settings() == Config()
    assert settings(fallback_random=True).fallback_random
    assert settings(**{"triton.cudagraphs": True}).cudagraphs
    assert settings(max_autotune_gemm=True, split_reductions=False).disabled_passes == "loop-split-reductions"
    assert settings(compile_threads=1).compile_threads == 1
    with inductor.patch(max_autotune=True, deterministic=True):
        config = Config.resolve("lite", {"deterministic": False}, torch_settings())
    assert (config.max_autotune, config.deterministic, config.fallback_by_default) == (True, False, True)
    with pytest.raises(UserError, match="'batch_invariant' would change results"):
        settings(batch_invariant=True)
    with pytest.warns(UserWarning, match="without effect: memory_planning"):
        settings(memory_planning=True)
    assert set(TOLD_WHEN_SET) <= set(NAMES)
    assert all(each.when for each in NAMES.values() if each.verdict == TRANSLATED)


def _double_products(graph: torch.fx.Graph) -> None:
    """Behind each product another addition of itself, in front of it: nodes out of order, as some passes leave them."""
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
        with graph.inserting_before(node):
            doubled = graph.call_function(torch.ops.aten.add.Tensor, (node, node))
        node.replace_all_uses_with(doubled, delete_user_cb=lambda user, made=doubled: user is not made)


@pytest.mark.parametrize(
    ("name", "factor", "backward"),
    [("post_grad_custom_pre_pass", 2.0, 2.0), ("post_grad_custom_post_pass", 2.0, 2.0),
     ("joint_custom_pre_pass", 2.0, 2.0), ("joint_custom_post_pass", 2.0, 2.0)],
)  # fmt: skip
def test_custom_passes_run_at_their_place(name: str, factor: float, backward: float, reset: None) -> None:
    x = torch.randn(5, requires_grad=True)
    compiled = torch.compile(lambda x: (x * 3.0).sin(), backend=inductile.backend(**{name: [_double_products]}))
    y = compiled(x)
    torch.testing.assert_close(y, (x.detach() * 3.0 * factor).sin())
    with torch.no_grad(), inductor.patch({name: _double_products}):
        torch.compiler.reset()
        torch.testing.assert_close(torch.compile(lambda x: (x * 3.0).cos(), backend="inductile")(x), (x * 6.0).cos())
    assert y.requires_grad


def test_pre_grad_pass_and_partitioner(reset: None) -> None:
    from torch._functorch.partitioners import default_partition

    seen: list[str] = []

    def to_sum(graph: torch.fx.Graph) -> None:
        for node in graph.find_nodes(op="call_function", target=operator.mul):
            node.target = operator.add

    def partition(*args: Any, **kwargs: Any) -> Any:
        seen.append(json.dumps(sorted(kwargs)))
        return default_partition(*args, **kwargs)

    x = torch.randn(5, requires_grad=True)
    chosen = inductile.backend(options={"pre_grad_custom_pass": to_sum, "custom_partitioner_fn": partition})
    y = torch.compile(lambda x: (x * 3.0).exp(), backend=chosen)(x)
    torch.testing.assert_close(y, (x + 3.0).exp())
    y.sum().backward()
    torch.testing.assert_close(x.grad, (x + 3.0).exp().detach())
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("pre_grad_custom_pass", 3, "holds 3; it takes a function"),
     ("joint_custom_pre_pass", [3], "holds 3; it takes a function"),
     ("trace.debug_dir", 3, "is 3; it takes a str"),
     ("triton.cudagraph_capture_sizes", 3, "is 3; it takes a tuple"),
     ("memory_pool", "pool", "is 'pool'; it takes a bool, or one of TorchInductor's 'none', 'intermediates',")],
)  # fmt: skip
def test_values_are_checked_under_the_name_that_was_written(name: str, value: Any, expected: str) -> None:
    with pytest.raises(UserError, match=f"option '{name}' {expected}"):
        inductile.backend(options={name: value})


def test_names_of_options_are_text() -> None:
    with pytest.raises(UserError, match="an option is named 3; names are text"):
        inductile.backend(options={3: 1})  # pyright: ignore[reportArgumentType]


def test_keys_of_functions_are_their_own() -> None:
    assert Config.resolve(None, {"trace": "x"}).key() == Config().key() != Config(disabled_passes="loop-cse").key()
    for options in ({"post_grad_custom_pre_pass": _double_products}, {"decompositions": {}}):
        config = Config.resolve(None, options)
        assert len({config.key(), config.key(), Config().key()}) == 3


def test_passes_may_be_left_out(reset: None) -> None:
    x = torch.randn(64, 64)
    chosen = inductile.backend(disabled_passes="loop-inline,loop-cse,remove-identities")
    torch.testing.assert_close(torch.compile(lambda x: (x.sin() + 1).cos(), backend=chosen)(x), (x.sin() + 1).cos())
    assert "loop-inline" not in REPORTS[-1].seconds and "loop-dce" in REPORTS[-1].seconds
    needed = inductile.backend(disabled_passes="lower-aten-to-loop")
    with pytest.raises(Exception, match=r"'disabled_passes' names 'lower-aten-to-loop'; .* without this pass"):
        torch.compile(lambda x: x.sin() - 1, backend=needed)(x)
    with pytest.warns(UserWarning, match=r"disabled_passes=loop-cs .*did you mean 'loop-cse'"):
        inductile.backend(disabled_passes="loop-cs")
