"""Images with few colours, read by an independent PNG reader."""

import io

from rlnb_tasks.picture import png

PALETTE = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


def test_each_pixel_has_the_colour_of_its_index() -> None:
    from PIL import Image

    with Image.open(io.BytesIO(png([bytes([0, 1]), bytes([2, 2]), bytes([1, 0])], PALETTE))) as image:
        assert image.size == (2, 3)
        pixels = [image.convert("RGB").getpixel((x, y)) for y in range(3) for x in range(2)]
    assert pixels == [PALETTE[index] for index in (0, 1, 2, 2, 1, 0)]


def test_the_same_rows_give_the_same_bytes() -> None:
    assert png([bytes(8)], PALETTE) == png([bytes(8)], PALETTE)
