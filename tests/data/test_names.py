"""Names of photographs."""

from rnnlab.data.names import composed


def test_two_forms_of_a_name_are_one():
    assert composed("e\u0301.jpg") == composed("\u00e9.jpg") == "\u00e9.jpg"
    assert composed("a/b c.PNG") == "a/b c.PNG"
