#!/usr/bin/env python3
"""Writes font_data.cpp: the letters of pictures, from a font file by FreeType.

    make_font_data.py [/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf]

Each glyph is drawn once in black and white with EM dots to the em, and is stored as the lengths of its runs; font.cpp
makes grey letters of any size of that. Needs libfreetype.so.6.
"""
import ctypes
import pathlib
import sys

EM = 72
DIGITS = "".join(chr(c) for c in range(ord("#"), ord("~") + 1) if chr(c) not in "?\\")  # neither escapes nor trigraphs
LONGEST = len(DIGITS) - 1
CHARACTERS = sorted({*range(0x20, 0x7F), *range(0xA1, 0x100), *range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA),
                     *map(ord, "‐–—‘’“”…‰⁰⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉→←↑↓∂∆∇∏∑−√∞∫≈≠≤≥Ωℓ℃□")} - {0xAD})


class Bitmap(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_uint), ("width", ctypes.c_uint), ("pitch", ctypes.c_int),
                ("buffer", ctypes.POINTER(ctypes.c_ubyte)), ("modes", ctypes.c_byte * 8), ("palette", ctypes.c_void_p)]


class Slot(ctypes.Structure):
    _fields_ = [("head", ctypes.c_byte * 48), ("metrics", ctypes.c_long * 8), ("linear", ctypes.c_long * 2),
                ("advance_x", ctypes.c_long), ("advance_y", ctypes.c_long), ("format", ctypes.c_int), ("bitmap", Bitmap),
                ("left", ctypes.c_int), ("top", ctypes.c_int)]


class Face(ctypes.Structure):
    _fields_ = [("head", ctypes.c_byte * 152), ("glyph", ctypes.POINTER(Slot))]


def runs(bits):
    """The lengths of white and black runs in turn, in one character each."""
    lengths, colour, length = [], False, 0
    for bit in [*bits, None]:
        if bit == colour:
            length += 1
            continue
        while length > LONGEST:
            lengths += [LONGEST, 0]
            length -= LONGEST
        lengths.append(length)
        colour, length = bit, 1
    if len(lengths) % 2:
        lengths.pop()  # white at the end
    return "".join(DIGITS[n] for n in lengths)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
    freetype = ctypes.CDLL("libfreetype.so.6")
    freetype.FT_Load_Char.argtypes = [ctypes.POINTER(Face), ctypes.c_ulong, ctypes.c_int32]
    freetype.FT_Get_Char_Index.argtypes = [ctypes.POINTER(Face), ctypes.c_ulong]
    library, face = ctypes.c_void_p(), ctypes.POINTER(Face)()
    if freetype.FT_Init_FreeType(ctypes.byref(library)) or freetype.FT_New_Face(library, path.encode(), ctypes.c_long(0), ctypes.byref(face)):
        sys.exit(f"{path}: not read")
    freetype.FT_Set_Pixel_Sizes(face, 0, EM)
    lines = []
    for character in CHARACTERS:
        if freetype.FT_Get_Char_Index(face, character) == 0:
            sys.exit(f"{path}: no glyph for U+{character:04X}")
        # Rendered, without hinting, in black and white.
        if freetype.FT_Load_Char(face, character, 1 << 2 | 1 << 1 | 2 << 16):
            sys.exit(f"{path}: U+{character:04X} is not drawn")
        slot = face.contents.glyph.contents
        shape = slot.bitmap
        bits = [bool(shape.buffer[row * shape.pitch + column // 8] >> (7 - column % 8) & 1)
                for row in range(shape.rows) for column in range(shape.width)]
        lines.append(f'    {{0x{character:04X}, {round(slot.advance_x / 64)}, {slot.left}, {slot.top}, {shape.width}, "{runs(bits)}"}},\n')
    (pathlib.Path(__file__).parent / "font_data.cpp").write_text(
        '// Made by make_font_data.py from DejaVu Sans 2.37, whose licence stands in LICENSE.\n'
        '#include "font_data.h"\n\nnamespace tessera {\n\nnamespace {\n\n// clang-format off\nconstexpr FontGlyph glyphs[] = {\n' +
        "".join(lines) + '};\n// clang-format on\n\n}  // namespace\n\n'
        'std::span<const FontGlyph> font_glyphs() {\n    return glyphs;\n}\n\n}  // namespace tessera\n')


if __name__ == "__main__":
    main()
