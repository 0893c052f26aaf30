"""Formatted numbers keep their value, and texts their length."""

import math

from hypothesis import given
from hypothesis import strategies as st

from posteriori.reporting import markup as writing
from posteriori.support.formatting import cell_text, count, escaped, exponential, number, probability, shortened

NUMBERS = st.floats(-1e20, 1e20)


@given(value=NUMBERS, digits=st.integers(2, 15))
def test_a_number_is_rounded_to_its_digits(value, digits):
    text = number(value, digits)
    assert math.isclose(float(text), value, rel_tol=0.51 * 10.0 ** (1 - digits)) or value == 0
    assert float(number(value, digits, separator=",").replace(",", "")) == float(text)


@given(value=NUMBERS)
def test_reports_and_the_terminal_show_the_same_digits(value):
    assert writing.number(value).replace(",", "").replace("\N{MINUS SIGN}", "-") == number(value)


@given(value=st.floats(0, 1))
def test_a_positive_probability_is_never_shown_as_0(value):
    assert (float(probability(value)) == 0) == (value == 0)
    assert math.isclose(float(probability(value)), value, rel_tol=0.06, abs_tol=5e-5)


@given(value=st.integers(0, 10**400))
def test_a_count_is_exact_or_about(value):
    text = count(value)
    if value < 10**15:
        assert int(text.replace(",", "")) == value
    else:
        mantissa, power = text.removeprefix("about ").split("e")
        assert math.isclose(math.log10(float(mantissa)) + int(power), math.log10(value), abs_tol=0.03)


@given(value=st.floats(-1e6, 1e6))
def test_exp_of_any_logarithm_is_shown(value):
    mantissa, _, power = exponential(value).partition("e")
    shown = math.log(float(mantissa)) + math.log(10) * int(power or 0)
    assert math.isclose(shown, value, abs_tol=1e-3)


@given(text=st.text(max_size=60), longest=st.integers(1, 50))
def test_texts_are_cut_and_printable(text, longest):
    assert len(shortened(text, longest)) <= longest
    assert text.startswith(shortened(text, longest).removesuffix("…")) or len(text) <= longest
    assert len(cell_text(text, longest)) <= longest
    assert escaped(text).isprintable()
