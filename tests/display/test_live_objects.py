"""The open objects of a kernel."""

import gc
import subprocess
import sys
import weakref

from rlnb.display.live_objects import LiveObjects

OPENING = """
from rlnb.display.live_objects import live_objects

class Opening:
    def __init__(self, name, **options):
        self.name, self.open = name, True
        live_objects.add(self, close=self.close, alive=lambda: self.open, **options)

    def close(self):
        self.open = False
        print("closed", self.name)
"""


class Opening:
    def __init__(self, objects):
        self.open = True
        objects.add(self, close=self.close, alive=lambda: self.open)

    def close(self):
        self.open = False


def test_open_objects_are_found_by_their_class_and_closed_together():
    objects = LiveObjects()
    one, other = Opening(objects), Opening(objects)
    assert objects.of(Opening) == [one, other]
    assert objects.of(str) == []
    one.close()
    assert objects.of(Opening) == [other]
    objects.close()
    assert not other.open


def test_an_object_that_has_ended_is_not_kept():
    objects = LiveObjects()
    gone = weakref.ref(Opening(objects))
    gc.collect()
    assert gone() is not None, "no variable holds it, but a page may show it"
    gone().close()
    Opening(objects)
    gc.collect()
    assert gone() is None


def test_the_next_execution_of_a_cell_closes_the_objects_of_the_last_one(kernel):
    kernel.run(OPENING, cell="cell-0")
    code = (
        "count = globals().get('count', 0) + 1\nkeep = globals().get('keep', [])\nkeep.append(Opening(f'view {count}'))"
    )
    assert kernel.run(f"{code}\nkeep.append(Opening(f'another {{count}}'))") == ""
    assert kernel.run("keep.append(Opening('elsewhere'))", cell="cell-2") == ""
    assert kernel.run(code) == "closed view 1\nclosed another 1\n"
    assert kernel.run(code) == "closed view 2\n"


def test_an_object_that_does_not_follow_its_cell_stays_open(kernel):
    kernel.run(OPENING, cell="cell-0")
    assert kernel.run("sweep = Opening('sweep', follows_cell=False)") == ""
    assert kernel.run("view = Opening('view')") == ""
    assert kernel.run("print([o.name for o in live_objects.of(Opening)])", cell="cell-2") == "['sweep', 'view']\n"


def test_everything_is_closed_when_the_program_ends():
    program = subprocess.run(
        [sys.executable, "-c", f"{OPENING}\nview = Opening('view')"], capture_output=True, text=True, timeout=60
    )
    assert program.stdout == "closed view\n"
