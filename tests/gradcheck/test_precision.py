"""Every gradient check refuses products of reduced precision."""

import re

import numpy as np
import pytest

from rnnlab.course import check, examine
from rnnlab.cs231n import gradient_check as of_the_course
from rnnlab.errors import InputError
from rnnlab.gradcheck import check_model, numeric
from rnnlab.gradcheck.precision import check_full_precision
from rnnlab.gradcheck.run import check_all
from rnnlab.ops.precision import products_in
from rnnlab.plain.affine import affine_forward


def number(x=None):
    return 0.0


X = np.zeros(2)
CHECKS = {
    "eval_numerical_gradient": lambda: numeric.eval_numerical_gradient(number, X),
    "eval_numerical_gradient_array": lambda: numeric.eval_numerical_gradient_array(number, X, 1.0),
    "grad_check_sparse": lambda: of_the_course.grad_check_sparse(number, X, X),
    "projected_check": lambda: numeric.projected_check(number, X, X),
    "check_model": lambda: check_model(None, ()),
    "check_all": lambda: list(check_all(only="affine")),
}


@pytest.mark.parametrize("matmul", ["tf32", "tf32x3", "bfloat16"])
@pytest.mark.parametrize("function", CHECKS)
def test_a_check_names_itself_and_the_precision(function, matmul):
    message = (
        f"{function}: gradient checks need products of full precision, RNNLAB_MATMUL or matmul is "
        f"{matmul!r}, expected 'float32'"
    )
    with products_in(matmul), pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        CHECKS[function]()


def test_checks_of_students_functions():
    for checks in (check, examine):
        with products_in("bfloat16"), pytest.raises(InputError, match="^check: gradient checks need"):
            checks("temporal_affine", affine_forward)


def test_full_precision_passes():
    with products_in("bfloat16"), products_in("float32"):
        check_full_precision("f")
