"""A HEIC and an AVIF picture, for crates/data/src/files/heif.rs. Needs Pillow with AVIF, and libheif with x265, which Pillow lacks.

    python3 tools/golden/heif_fixtures.py
"""

import ctypes
import pathlib

from PIL import Image

TO = pathlib.Path(__file__).resolve().parents[2] / "crates/data/tests/fixtures/heif"
WIDTH, HEIGHT = 48, 32
HEVC, RGB, INTERLEAVED = 1, 1, 10


class Status(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("subcode", ctypes.c_int), ("message", ctypes.c_char_p)]


def checked(status):
    assert status.code == 0, status.message


def halves():
    """Left half red, right half blue."""
    image = Image.new("RGB", (WIDTH, HEIGHT))
    image.putdata([(255, 0, 0) if x < WIDTH // 2 else (0, 0, 255) for y in range(HEIGHT) for x in range(WIDTH)])
    return image


def heic(image, to):
    lib = ctypes.CDLL("libheif.so.1")
    lib.heif_context_alloc.restype = ctypes.c_void_p
    lib.heif_image_get_plane.restype = ctypes.POINTER(ctypes.c_uint8)
    for name in ["context_get_encoder_for_format", "image_create", "image_add_plane", "context_encode_image",
                 "context_write_to_file", "encoder_set_lossy_quality"]:
        getattr(lib, "heif_" + name).restype = Status
    context = ctypes.c_void_p(lib.heif_context_alloc())
    encoder, picture, stride = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    checked(lib.heif_context_get_encoder_for_format(context, HEVC, ctypes.byref(encoder)))
    checked(lib.heif_image_create(WIDTH, HEIGHT, RGB, INTERLEAVED, ctypes.byref(picture)))
    checked(lib.heif_image_add_plane(picture, INTERLEAVED, WIDTH, HEIGHT, 8))
    plane = lib.heif_image_get_plane(picture, INTERLEAVED, ctypes.byref(stride))
    row = WIDTH * 3
    for i, byte in enumerate(image.tobytes()):
        plane[i // row * stride.value + i % row] = byte
    checked(lib.heif_encoder_set_lossy_quality(encoder, 90))
    checked(lib.heif_context_encode_image(context, picture, encoder, None, None))
    checked(lib.heif_context_write_to_file(context, str(to).encode()))


TO.mkdir(parents=True, exist_ok=True)
halves().save(TO / "halves.avif", quality=80)
heic(halves(), TO / "halves.heic")
