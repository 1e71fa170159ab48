"""The limits are far above what honest data need."""

from rnnlab import limits
from rnnlab.recipes import shipped


def test_published_files_are_within_the_limits():
    assert limits.JSON_BYTES > 3 * 144e6  # dataset_coco.json
    assert limits.LINE_BYTES >= 64 * limits.VECTOR_SIZE
    assert limits.EXPANSION < 1032, "gzip expands no more"


def test_recipes_are_far_within_the_limits():
    for name in shipped.names():
        text = shipped.text(name)
        assert len(text.encode()) < limits.RECIPE_BYTES / 20
        assert max(map(len, text.splitlines())) < limits.RECIPE_LINE / 10
