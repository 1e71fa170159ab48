"""Teaching: checks that name the mistake in a wrong gradient, and students' functions in the model.

from rnnlab.course import check
check("lstm_step", lstm_step_forward, lstm_step_backward)
"""

from rnnlab.course.check import Report, WrongFunction, check, examine
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.use import Used, use

__all__ = ["EXERCISES", "Report", "Used", "WrongFunction", "check", "examine", "use"]
