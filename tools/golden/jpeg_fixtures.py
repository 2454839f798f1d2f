"""Small JPEG files of every kind that is read, for crates/data/src/files/jpeg. Needs Pillow.

    python3 tools/golden/jpeg_fixtures.py
"""

import io
import math
import pathlib

from PIL import Image

TO = pathlib.Path(__file__).resolve().parents[2] / "crates/data/tests/fixtures/jpeg"
WIDTH, HEIGHT = 40, 24


def picture(mode="RGB"):
    """Something with edges and noise, so that no block is empty."""
    image = Image.new("RGB", (WIDTH, HEIGHT))
    value = lambda x, y, c: (x * (5 + c) + y * (9 - c) + (x * y * 7919 >> 3) % 61) % 256
    image.putdata([tuple(value(x, y, c) for c in range(3)) for y in range(HEIGHT) for x in range(WIDTH)])
    return image.convert(mode)


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", quality=75, **options)
    return out.getvalue()


def with_thumbnail():
    """A whole JPEG, markers and all, inside an APP1 segment: what cameras write."""
    inner = jpeg(picture().resize((16, 16)))
    outer = jpeg(picture())
    body = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\0\0\0\0\0" + inner
    segment = b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body
    return outer[:2] + segment + outer[2:]


def smooth(mode="RGB"):
    """Waves that are long beside 16 pixels, of a size that is no multiple of anything."""
    wave = lambda x, y, c: int(128 + 80 * math.sin(x / (23 + 4 * c) + c) * math.cos(y / (29 - 3 * c)))
    image = Image.new("RGB", (203, 131))
    image.putdata([tuple(wave(x, y, c) for c in range(3)) for y in range(131) for x in range(203)])
    return image.convert(mode)


TO.mkdir(parents=True, exist_ok=True)
for name, data in {
    "baseline": jpeg(picture()),
    "progressive": jpeg(picture(), progressive=True),
    "restarts": jpeg(picture(), restart_marker_blocks=1),
    "grey": jpeg(picture("L")),
    "cmyk": jpeg(picture("CMYK")),
    "thumbnail": with_thumbnail(),
    "smooth-444": jpeg(smooth(), subsampling="4:4:4"),
    "smooth-422": jpeg(smooth(), subsampling="4:2:2"),
    "smooth-420": jpeg(smooth(), subsampling="4:2:0"),
    "smooth-restarts": jpeg(smooth(), subsampling="4:2:0", restart_marker_blocks=3),
    "smooth-grey": jpeg(smooth("L")),
    "smooth-progressive": jpeg(smooth(), subsampling="4:2:0", progressive=True),
}.items():
    (TO / f"{name}.jpg").write_bytes(data)
    print(name, len(data))
