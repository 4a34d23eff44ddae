"""Measures as values: what equals what, how they print and are read, and what is refused."""

import copy
import math
import pickle
import pydoc
import re
import sys

import numpy as np
import pytest
import strategies as ours
from hypothesis import given
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import FastndcgError, InputTypeError, MeasureError
from fastndcg.measures import DEFINITIONS, as_measure, as_measures

NAMES = ("nDCG", "DCG", "IDCG", "CG", "NumRet")
WORDS = {name: tuple(each.name for each in DEFINITIONS[name].parameters) for name in NAMES}


def cube(grade):
    return grade**3


def another_cube(grade):
    return grade**3


finite = st.floats(allow_nan=False, allow_infinity=False)
sequences = st.lists(finite | st.integers(-(2**60), 2**60), min_size=1, max_size=5)
mappings = st.dictionaries(finite | st.integers(-5, 9), finite, min_size=1, max_size=4)
functions = st.sampled_from([cube, another_cube, math.sqrt, math.exp, abs, len, np.log2, np.sqrt, ours.cubed])
gain_values = (
    st.sampled_from(["linear", "exp2", "binary"]) | sequences | sequences.map(tuple) | mappings | functions
)
discount_values = (
    st.sampled_from(["log2", "jarvelin", "reciprocal", "ln", 2, 2.0, math.e, 10])
    | st.floats(1, 1e6, exclude_min=True)
    | sequences
    | functions
)
VALUES = {
    "gain": gain_values,
    "discount": discount_values,
    "ties": st.sampled_from(ours.TIES),
    "floor": st.sampled_from(["zero", "worst"]),
    "ideal": st.sampled_from(ours.IDEALS),
    "empty": st.sampled_from([0, 0.0, -0.0, 1, 1.0, "nan", "skip", math.nan]) | finite,
    "judged_only": st.booleans(),
    "rel": st.none() | st.sampled_from([0, 1, 1.0, 2]) | finite,
    "unjudged": st.none() | st.sampled_from([0, 1, 1.0, 2]) | finite,
    "ips": st.sampled_from([False, True, "snips"]),
    "clip": st.sampled_from([0, 0.0, 1]) | st.floats(0, 1),
}
DEFAULTS = {each.name: each.default for name in ("nDCG", "CG") for each in DEFINITIONS[name].parameters}


@st.composite
def measures(draw):
    name = draw(st.sampled_from(NAMES))
    words = {word: draw(VALUES[word]) for word in WORDS[name] if draw(st.booleans())}
    if "gain" in WORDS[name] and draw(st.integers(0, 4)) == 0:
        words.pop("gain", None)
        words["gains"] = draw(mappings)
    measure = getattr(fn, name)(**words)
    cutoff = draw(st.none() | st.integers(1, 10**20))
    return measure if cutoff is None else measure @ cutoff


# ---- values ----


@given(measures())
def test_parse_is_the_inverse_of_str(measure):
    again = fn.parse(str(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert str(again) == str(measure)
    assert repr(measure) == str(measure)
    assert again.params == measure.params
    assert fn.parse_many(str(measure)) == (measure,)


@given(measures(), measures())
def test_two_definitions_never_print_alike(one, other):
    assert (one == other) == (str(one) == str(other))
    if one == other:
        assert hash(one) == hash(other)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_do_not_print(name):
    measure = getattr(fn, name)
    assert str(measure) == name
    assert str(measure @ 10) == f"{name}@10"
    assert measure.name == name and measure.cutoff is None
    assert dict(measure.params) == {word: DEFAULTS[word] for word in WORDS[name]}
    assert measure(**dict(measure.params)) == measure
    for word, value in measure.params.items():
        assert getattr(measure, word) == value


def test_only_what_differs_from_the_default_prints():
    assert str(fn.nDCG(gain="exp2") @ 10) == "nDCG(gain='exp2')@10"
    assert str(fn.nDCG(gain="linear", ties="worst", rel=2)) == "nDCG(ties='worst', rel=2)"
    assert str(fn.nDCG(gain=[0, 1, 3])) == "nDCG(gain=[0, 1, 3])"
    assert str(fn.nDCG(gain={3: 7, 1: 0.5})) == "nDCG(gain={1: 0.5, 3: 7})"
    assert str(fn.nDCG(empty=1)) == str(fn.nDCG(empty=1.0)) == "nDCG(empty=1)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (fn.nDCG(gain=[0, 1, 3]), fn.nDCG(gain=(0.0, 1.0, 3.0))),
        (fn.nDCG(gain=np.array([0, 1, 3])), fn.nDCG(gain=[0, 1, 3])),
        (fn.nDCG(gain={1: 2, 0: 1}), fn.nDCG(gain={0: 1.0, 1: 2.0})),
        (fn.nDCG(discount=3), fn.nDCG(discount=np.float32(3))),
        (fn.nDCG(empty=math.nan), fn.nDCG(empty="nan")),
        (fn.nDCG(empty=0), fn.nDCG),
        (fn.nDCG(empty=-0.0), fn.nDCG),
        (fn.nDCG(gain="binary", rel=1), fn.nDCG(gain="binary")),
        (fn.nDCG(rel=np.int64(2)), fn.nDCG(rel=2)),
        (fn.nDCG @ np.int64(10), fn.nDCG @ 10),
        (fn.nDCG @ 5 @ 10, fn.nDCG @ 10),
        ((fn.nDCG @ 10)(gain="exp2"), fn.nDCG(gain="exp2") @ 10),
        (fn.nDCG(gain="exp2")(ties="worst"), fn.nDCG(gain="exp2", ties="worst")),
        (fn.NDCG @ 3, fn.nDCG @ 3),
    ],
    ids=str,
)
def test_one_value_however_it_is_made(one, other):
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (fn.nDCG, fn.DCG),
        (fn.nDCG, fn.nDCG @ 10),
        (fn.nDCG(gain="binary"), fn.nDCG(rel=1)),
        (fn.nDCG(gain={2: 7}), fn.nDCG(gains={2: 7})),
        (fn.nDCG(discount=2.0), fn.nDCG),
        (fn.nDCG(empty="nan"), fn.nDCG(empty="skip")),
        (fn.nDCG(gain=cube), fn.nDCG(gain=another_cube)),
        (fn.nDCG(rel=0), fn.nDCG),
        (fn.nDCG(judged_only=True), fn.nDCG),
    ],
    ids=str,
)
def test_different_definitions_differ(one, other):
    assert one != other
    assert str(one) != str(other)


# ---- functions ----


def test_a_function_prints_its_qualified_name_and_is_told_by_identity():
    measure = fn.nDCG(gain=cube) @ 3
    assert f"{cube.__module__}.cube" in str(measure)
    assert measure == fn.nDCG(gain=cube) @ 3
    assert measure != fn.nDCG(gain=another_cube) @ 3
    assert fn.parse(str(measure)) == measure


def test_functions_of_one_name_do_not_print_alike():
    def made(power):
        def gain(grade):
            return grade**power

        return gain

    square, cubic = made(2), made(3)
    one, other = fn.nDCG(gain=square), fn.nDCG(gain=cubic)
    assert one != other and str(one) != str(other)
    assert fn.parse(str(one)) == one and fn.parse(str(other)) == other
    lambdas = [fn.nDCG(gain=lambda grade, power=power: grade**power) for power in range(4)]
    assert len(set(lambdas)) == len(set(map(str, lambdas))) == 4
    assert all(fn.parse(str(measure)) == measure for measure in lambdas)


def test_a_live_measure_keeps_its_text_when_others_of_that_name_come_and_go():
    def made():
        return lambda grade: grade

    first = fn.nDCG(gain=made())
    text = str(first)
    for _ in range(50):
        passing = fn.nDCG(gain=made())
        assert passing != first and str(passing) != text
        del passing
    assert str(first) == text and fn.parse(text) == first


def test_callable_objects_and_partials_are_functions():
    class Gain:
        def __call__(self, grade):
            return 2 * grade

    one, other = Gain(), Gain()
    assert fn.nDCG(gain=one) == fn.nDCG(gain=one)
    assert fn.nDCG(gain=one) != fn.nDCG(gain=other)
    assert str(fn.nDCG(gain=one)) != str(fn.nDCG(gain=other))
    assert fn.parse(str(fn.nDCG(gain=one, discount=other))) == fn.nDCG(gain=one, discount=other)


def test_a_function_that_is_not_alive_cannot_be_read():
    with pytest.raises(MeasureError, match="nowhere.at_all"):
        fn.parse("nDCG(gain=function('nowhere.at_all'))")


# ---- immutable, hashable, copied, pickled ----


def test_immutable():
    measure = fn.nDCG @ 10
    for attribute in ("cutoff", "name", "gain", "new"):
        with pytest.raises(AttributeError):
            setattr(measure, attribute, 1)
    with pytest.raises(AttributeError):
        del measure.cutoff
    with pytest.raises(TypeError):
        measure.params["gain"] = "exp2"
    assert measure == fn.nDCG @ 10 != "nDCG@10" and measure.gain == "linear"
    with pytest.raises(AttributeError, match="banana"):
        _ = measure.banana


def test_later_changes_of_an_argument_do_not_reach_in():
    gains, table = {1: 2.0}, [0.0, 1.0]
    measure = fn.nDCG(gain=gains, discount=table)
    text = str(measure)
    gains[1], table[0] = 9.0, 9.0
    assert str(measure) == text and fn.parse(text) == measure


@given(measures())
def test_copies_are_equal(measure):
    assert copy.copy(measure) == measure
    assert copy.deepcopy(measure) == measure
    again = pickle.loads(pickle.dumps(measure))
    assert again == measure and hash(again) == hash(measure) and str(again) == str(measure)


# ---- notation ----


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("nDCG@10", fn.nDCG @ 10),
        (" nDCG @ 10 ", fn.nDCG @ 10),
        ("NDCG@10", fn.nDCG @ 10),
        ("nDCG()", fn.nDCG),
        ('nDCG(gain="exp2")@10', fn.nDCG(gain="exp2") @ 10),
        ("nDCG( gain = 'exp2' , ties='worst') @ 10", fn.nDCG(gain="exp2", ties="worst") @ 10),
        ("nDCG(gain=[0, 1, 3])", fn.nDCG(gain=[0, 1, 3])),
        ("nDCG(gain=(0, 1, 3))", fn.nDCG(gain=[0, 1, 3])),
        ("nDCG(gain={-1: 0, 2: 3.5})", fn.nDCG(gain={-1: 0, 2: 3.5})),
        ("nDCG(discount=10)", fn.nDCG(discount=10)),
        ("nDCG(judged_only=True)", fn.nDCG(judged_only=True)),
        ("nDCG(rel=2, gain='binary')", fn.nDCG(gain="binary", rel=2)),
        ("nDCG(dcg='exp-log2')@20", fn.nDCG(gain="exp2") @ 20),
        ("nDCG(dcg='log2')@20", fn.nDCG @ 20),
        ("nDCG(gains={2: 7})", fn.nDCG(gains={2: 7})),
        ("NumRet(rel=1)", fn.NumRet(rel=1)),
    ],
)
def test_notation(text, measure):
    assert fn.parse(text) == measure
    assert as_measure(text) == measure


def test_words_that_are_a_subclass_of_str_print_as_they_are_read():
    class Word(str):
        __slots__ = ()

        def __repr__(self):
            return f"Word.{self.upper()}"

        __str__ = __repr__

    for kind in (np.str_, Word):
        measure = fn.nDCG(ties=kind("worst"), gain=kind("exp2"), discount=kind("ln"), empty=kind("skip"))
        assert str(measure) == "nDCG(gain='exp2', discount='ln', ties='worst', empty='skip')"
        assert fn.parse(str(measure)) == measure


def test_ir_measures_objects():
    ir_measures = pytest.importorskip("ir_measures")
    pairs = [
        (ir_measures.nDCG, fn.nDCG),
        (ir_measures.nDCG @ 10, fn.nDCG @ 10),
        (ir_measures.nDCG(dcg="exp-log2") @ 10, fn.nDCG(gain="exp2") @ 10),
        (ir_measures.nDCG(dcg="log2") @ 10, fn.nDCG @ 10),
        (ir_measures.nDCG(judged_only=True) @ 5, fn.nDCG(judged_only=True) @ 5),
        (ir_measures.nDCG(gains={1: 2, 2: 7}), fn.nDCG(gains={1: 2, 2: 7})),
        (ir_measures.NumRet, fn.NumRet),
        (ir_measures.NumRet(rel=2), fn.NumRet(rel=2)),
    ]
    for theirs, measure in pairs:
        assert as_measure(theirs) == measure
        assert as_measures(theirs) == (measure,)
        if sys.version_info < (3, 14):  # ir_measures parses with names that Python 3.14 lacks
            assert "gain" in str(measure) or as_measure(ir_measures.parse_measure(str(measure))) == measure
    assert as_measures([theirs for theirs, _ in pairs[:3]]) == (
        fn.nDCG,
        fn.nDCG @ 10,
        fn.nDCG(gain="exp2") @ 10,
    )


# ---- what is refused ----


@pytest.mark.parametrize("cutoff", [0, -1, True, False, 10.0, 1.5, "10", None, [1]])
def test_a_cutoff_is_a_whole_number_from_1(cutoff):
    for read in (lambda: fn.nDCG @ cutoff, lambda: fn.parse(f"nDCG@{cutoff!r}")):
        with pytest.raises(MeasureError, match="expected a whole number of at least 1"):
            read()
    assert (fn.nDCG @ 1).cutoff == 1


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "nDCG@", "@10", "nDCG(", "nDCG('exp2')", "nDCG(gain='exp2'", "nDCG 10", "10", "nDCG+DCG", "nDCG.x", "nDCG(**{})",
        "nDCG(*[1])", "nDCG;DCG", "nDCG\nDCG", "nDCG@10@20@", "'nDCG'", "\0", "\ud800", "x" * 10_000, "(" * 500 + "nDCG" + ")" * 500,
        "(" * 150 + "nDCG" + ")" * 150 + "@", "nDCG" + "@5" * 3000, "nDCG@10@5", "nDCG@10@5, 3", "nDCG, 5", "nDCG@(1, 2)", "IPrec@[1]",
        "nDCG(gain={0: exp2})", "nDCG(gain=__import__('os'))", "nDCG(gain=1+1j)", "nDCG(gain=print)", "nDCG(gain={'a': 1})",
        "nDCG(gain=function())", "nDCG(gain=function([1]))", "nDCG(gain=function('a', 'b'))", "nDCG(gain=function(*'ab'))",
        "nDCG(gain=function('no such', 2))", "nDCG(rel=1" + "0" * 400 + ")", "nDCG(empty=-1" + "0" * 400 + ")",
        "nDCG(rel=" + "-" * 3000 + "1)", "nDCG(gain=" + "[" * 180 + "]" * 180 + ")", "nDCG(dcg='exp-log2', gain='linear')",
        "nDCG(dcg='log2', gain=[1, 2])", "nDCG(gain=b'ab')", "nDCG(discount=b'ab')", "nDCG(gain={1, 2})", "F(beta=1e200)",
        "nDCG(rel=1, rel=2)", "nDCG(rel=1j)", "nDCG(rel=...)", "nDCG(gain={**{}})", "nDCG(gain=f'{1}')", "nDCG(rel=0xg)",
        "nDCG(gain={(): 1})", "nDCG(ties={})", "rbp.95", "hits@", "nDCG@@10", "map_cut.", "10@nDCG",
    ],
    ids=lambda text: ascii(text)[:30],
)  # fmt: skip
def test_what_is_no_notation_is_refused(text):
    for _ in range(2):  # nothing of it is kept
        with pytest.raises(MeasureError) as caught:
            fn.parse(text)
        assert len(str(caught.value)) < 12_000


@given(st.text(max_size=30) | st.text(alphabet="nDCG@(),='0123456789gaintsexp2 [{:}]-.", max_size=40))
def test_any_text_is_read_or_refused_as_a_measure_error(text):
    try:
        for measure in fn.parse_many(text):
            assert fn.parse(str(measure)) == measure
    except MeasureError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"gain": "exp"}, r"gain='exp' is not known.*'exp2'.*Did you mean \"exp2\"\?"),
        ({"gain": 3}, "gain=3 is not known"),
        ({"gain": None}, "gain=None is not known"),
        ({"gain": []}, "empty"),
        ({"gain": {}}, "at least one grade"),
        ({"gain": [0, math.nan]}, "finite"),
        ({"gain": [0, "x"]}, "a number was expected"),
        ({"gain": {1: math.inf}}, "finite"),
        ({"gain": {"x": 1}}, "a number was expected"),
        ({"gains": [1]}, "gains"),
        ({"gains": "exp2"}, "Words and functions are gain="),
        ({"gain": "exp2", "gains": {1: 2}}, "both passed"),
        ({"dcg": "log"}, "dcg='log' is not known"),
        ({"discount": "log"}, r"discount='log' is not known.*Did you mean \"log2\"\?"),
        ({"discount": 1}, "above 1"),
        ({"discount": 0.5}, "above 1"),
        ({"discount": True}, "discount=True"),
        ({"discount": []}, "empty"),
        ({"discount": {1: 1.0, 2: 0.5}}, "a sequence, or a function of the rank"),
        ({"discount": {1.0, 0.5}}, "a sequence, or a function of the rank"),
        ({"discount": math.inf}, "finite"),
        ({"ties": "mean"}, "ties='mean' is not known: ties is one of 'average', 'input', 'worst', 'best'"),
        ({"ties": "wurst"}, r"Did you mean \"worst\"\?"),
        ({"ideal": "all"}, "ideal='all' is not known: ideal is one of 'judged', 'scored', 'returned', 'full'"),
        ({"empty": "zero"}, "a number, 'nan' or 'skip'"),
        ({"empty": None}, "empty"),
        ({"empty": True}, "empty=True"),
        ({"empty": math.inf}, "finite"),
        ({"judged_only": "yes"}, "judged_only='yes' is not known: judged_only is True or False"),
        ({"judged_only": None}, "judged_only"),
        ({"rel": "1"}, "rel"),
        ({"rel": True}, "rel=True"),
        ({"rel": math.nan}, "finite"),
        ({"gian": "exp2"}, r"nDCG has no parameter 'gian'; it has: gain, discount.*Did you mean \"gain\"\?"),
        ({"k": 10}, "nDCG has no parameter 'k'"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_parameter_is_refused(words, message):
    with pytest.raises(MeasureError, match=message) as caught:
        fn.nDCG(**words)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, FastndcgError)


def test_the_boundary_values_are_accepted():
    assert fn.nDCG(discount=np.nextafter(1.0, 2.0)).discount > 1
    assert fn.nDCG(gain=[0]).gain == (0.0,)
    assert fn.nDCG(gain={0: 0}) != fn.nDCG
    assert fn.nDCG(empty=-1e300).empty == -1e300
    assert fn.nDCG(judged_only=np.bool_(True)) == fn.nDCG(judged_only=1) == fn.nDCG(judged_only=True)
    assert fn.nDCG(rel=-1).rel == -1


@pytest.mark.parametrize("name", ["CG", "NumRet", "DCG"])
def test_a_parameter_that_a_measure_does_not_have_is_refused(name):
    for word in set(DEFAULTS) - {*WORDS[name]}:
        with pytest.raises(MeasureError, match=f"{name} has no parameter '{word}'"):
            getattr(fn, name)(**{word: DEFAULTS[word]})


@pytest.mark.parametrize("thing", [None, 3, 1.5, object(), b"nDCG", {"nDCG": 1}.values])
def test_what_is_no_measure_is_refused(thing):
    with pytest.raises(InputTypeError, match="measure"):
        as_measure(thing)


def test_one_or_several_measures():
    assert as_measures(["nDCG@1,3", fn.CG @ 3, "nDCG@3"]) == (fn.nDCG @ 1, fn.nDCG @ 3, fn.CG @ 3)
    assert as_measures(fn.nDCG) == (fn.nDCG,)
    assert as_measures(measure for measure in [fn.nDCG, "DCG"]) == (fn.nDCG, fn.DCG)
    with pytest.raises(MeasureError, match="no measure was given"):
        as_measures([])
    with pytest.raises(MeasureError, match="parse_many"):
        fn.parse("nDCG@1,3")


# ---- ranges of cutoffs ----


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("nDCG@1-3", ["nDCG@1", "nDCG@2", "nDCG@3"]),
        ("nDCG@all", ["nDCG"]),
        ("nDCG(gain='exp2')@5,9-11,all", [f"nDCG(gain='exp2'){at}" for at in ("@5", "@9", "@10", "@11", "")]),
        ("P@1-2, AP, RR@all, R@3,5-6", ["P@1", "P@2", "AP", "RR", "R@3", "R@5", "R@6"]),
        ("nDCG @ 1 - 2", ["nDCG@1", "nDCG@2"]),
        ("nDCG@1,3, CG@5,6, DCG", ["nDCG@1", "nDCG@3", "CG@5", "CG@6", "DCG"]),
    ],
)
def test_ranges_of_cutoffs(text, wanted):
    assert [str(measure) for measure in fn.parse_many(text)] == wanted
    assert all(fn.parse(str(measure)) == measure for measure in fn.parse_many(text))
    rankings = fn.Rankings.from_lists([[0, 1, 2]])
    assert [str(measure) for measure in fn.evaluate(rankings, [text]).measures] == wanted


def test_a_range_is_several_measures():
    with pytest.raises(fn.MeasureError, match=r"'nDCG@1-20' names 20 measures where one was expected"):
        fn.parse("nDCG@1-20")
    assert fn.parse("nDCG@all") == fn.nDCG
    assert len(fn.parse_many("nDCG@1-1000")) == 1000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("nDCG@3-1", "nDCG@3-1 is not a range of cutoffs; expected the lower one first"),
        ("nDCG@5-5", "not a range of cutoffs"),
        ("nDCG@1-1001", "at most 1000 of them"),
        ("nDCG@0-3", "cutoff 0 of nDCG is not known; expected a whole number of at least 1"),
        ("nDCG@1-2.5", "cutoff 2.5 of nDCG is not known; expected a whole number of at least 1"),
        ("IPrec@0.1-0.5", "is not a value"),
        ("Bpref@1-3", "is not a value"),
        ("IPrec@all", "is not a value"),
        ("nDCG@1-2-3", "is not a value"),
        ("nDCG-3", "is not a measure"),
        ("1-3", "is not a measure"),
        ("nDCG, 1-3", "is not a measure"),
    ],
)
def test_what_is_no_range(text, wanted):
    with pytest.raises(fn.MeasureError, match=re.escape(wanted)):
        fn.parse_many(text)


# ---- help ----


@pytest.mark.parametrize("name", DEFINITIONS)
def test_help_says_what_a_measure_is(name):
    definition, text = DEFINITIONS[name], pydoc.render_doc(getattr(fn, name), renderer=pydoc.plaintext)
    for told in (definition.summary, definition.formula, definition.range, definition.source):
        assert told in text
    for parameter in definition.parameters:
        assert f"{parameter.name} = " in text and parameter.meaning in text
        assert all(f"{value}: {meaning}" in text for value, meaning in parameter.values)


def test_help_has_the_values_of_this_measure():
    text = pydoc.render_doc(fn.nDCG(gain="exp2") @ 5, renderer=pydoc.plaintext)
    assert "nDCG(gain='exp2')@5: normalised discounted cumulative gain." in text
    assert "gain = 'exp2'" in text and "ties = 'average'" in text
    assert fn.Measure.__doc__ is not None and fn.Measure.__doc__.startswith("A measure with the values")
    assert "A measure with the values" in pydoc.render_doc(fn.Measure)


def test_a_measure_is_no_function_of_data():
    for call in (lambda: (fn.nDCG @ 10)([1, 0], [0.5, 0.1]), lambda: (fn.nDCG @ 10).__name__):
        with pytest.raises(
            (fn.InputTypeError, AttributeError), match=r"^nDCG@10 is a measure, which is no function of data"
        ):
            call()
    assert not hasattr(fn.nDCG, "__name__")
