"""Teaching with the library: checks that name the mistake in a wrong gradient.

from rnnlab.course import check
check("lstm_step", lstm_step_forward, lstm_step_backward)
"""

from rnnlab.course.check import Report, WrongFunction, check, examine
from rnnlab.course.exercises import EXERCISES

__all__ = ["EXERCISES", "Report", "WrongFunction", "check", "examine"]
