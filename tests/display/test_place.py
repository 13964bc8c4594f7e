"""A place in a cell's output, in a kernel of Jupyter. tests/browser/test_marimo.py has places in marimo."""

CODE = """
from PIL import Image
from rlnb.display import front_end
there = front_end.show_place({"text/html": "<b>1</b>", "text/plain": "one"}, raw=True)
there.update(Image.new("RGB", (4, 4)))
"""


def test_a_value_is_replaced_in_its_place(kernel):
    kernel.run(CODE)
    shown, replaced = (m for m in kernel.messages if "data" in m["content"])
    assert shown["content"]["data"] == {"text/html": "<b>1</b>", "text/plain": "one"}
    assert "image/png" in replaced["content"]["data"]
    assert replaced["content"]["transient"] == shown["content"]["transient"]
