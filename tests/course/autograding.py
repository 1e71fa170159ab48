"""nbgrader's autograde, run on a released course."""

import os
import shutil
from unittest import mock


def autograde(copy, submissions):
    """The points of each graded cell, by student, as nbgrader's autograde gives them; None: by hand.

    ``copy`` is a released course, in which the submissions, a path for each student, are put.
    """
    from nbgrader.api import Gradebook
    from nbgrader.converters import Autograde
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    loaded = Config()
    (stem,) = {path.stem for path in submissions.values()}
    for student, path in submissions.items():
        (copy / "submitted" / student / stem).mkdir(parents=True)
        shutil.copy(path, copy / "submitted" / student / stem)
    with mock.patch.dict(os.environ):  # which the settings change
        exec((copy / "nbgrader_config.py").read_text("utf8"), {"get_config": lambda: loaded})
        where = CourseDirectory(root=str(copy), assignment_id=stem, config=loaded)
        Autograde(coursedir=where, config=loaded).start()
    with Gradebook(where.db_url, where.course_id) as book:
        found = {}
        for student in submissions:
            notebook = book.find_submission_notebook(stem, stem, student)
            found[student] = {each.cell.name: each.auto_score for each in notebook.grades}
        return found
