"""Draws the pictures of this task and packs them into original_snapshot.zip.

    python3 make_world.py            writes the archive
    python3 make_world.py --check    compares the archive with what would be drawn

Needs nothing but Python 3. Times are fixed, so the same zlib gives the same bytes; --check compares names and pixels,
since another zlib may pack the same picture differently.
"""

import io
import math
import struct
import sys
import zipfile
import zlib
from pathlib import Path

SIZE = 240  # width and height of a picture in pixels
FINE = 3  # samples per pixel in each direction, for smooth edges
ARCHIVE = Path(__file__).parent / "original_snapshot.zip"


class Picture:
    """Flat colours in a square, drawn one over the other; x to the right, y down, in pixels."""

    def __init__(self, background):
        self.rows = [[background] * (SIZE * FINE) for _ in range(SIZE * FINE)]

    def shape(self, colour, *outlines):
        """Fills what lies within an odd number of the outlines, so that an inner one makes a hole."""
        edges = []
        for outline in outlines:
            for (x1, y1), (x2, y2) in zip(outline, outline[1:] + outline[:1]):
                if y1 != y2:
                    edges.append((x1, y1, x2, y2) if y1 < y2 else (x2, y2, x1, y1))
        for number, row in enumerate(self.rows):
            y = (number + 0.5) / FINE
            crossings = sorted(
                x1 + (y - y1) * (x2 - x1) / (y2 - y1) for x1, y1, x2, y2 in edges if y1 <= y < y2
            )
            for left, right in zip(crossings[::2], crossings[1::2]):
                start = max(0, math.ceil(left * FINE - 0.5))
                end = max(start, min(len(row), math.ceil(right * FINE - 0.5)))
                row[start:end] = [colour] * (end - start)

    def disc(self, colour, x, y, width, height=None):
        self.shape(colour, ellipse(x, y, width / 2, (height or width) / 2))

    def ring(self, colour, x, y, diameter, thickness):
        inner = diameter / 2 - thickness
        self.shape(colour, ellipse(x, y, diameter / 2, diameter / 2), ellipse(x, y, inner, inner))

    def stroke(self, colour, thickness, *points):
        """A line through the points, with round ends and corners."""
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            length = math.hypot(x2 - x1, y2 - y1)
            dx, dy = (x2 - x1) / length * thickness / 2, (y2 - y1) / length * thickness / 2
            self.shape(colour, [(x1 - dy, y1 + dx), (x2 - dy, y2 + dx), (x2 + dy, y2 - dx), (x1 + dy, y1 - dx)])
        for x, y in points:
            self.disc(colour, x, y, thickness)

    def pixels(self):
        """RGB bytes, row by row, each pixel the mean of its samples."""
        for top in range(0, SIZE * FINE, FINE):
            line = bytearray()
            for left in range(0, SIZE * FINE, FINE):
                samples = [c for row in self.rows[top : top + FINE] for c in row[left : left + FINE]]
                line += bytes(sum(channel) // len(samples) for channel in zip(*samples))
            yield bytes(line)

    def png(self):
        def chunk(kind, content):
            checksum = zlib.crc32(kind + content)
            return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

        header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)  # 8 bits, RGB, not interlaced
        data = zlib.compress(b"".join(b"\0" + line for line in self.pixels()), 9)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def ellipse(x, y, rx, ry, corners=96):
    angles = [2 * math.pi * corner / corners for corner in range(corners)]
    return [(x + rx * math.cos(angle), y + ry * math.sin(angle)) for angle in angles]


def curve(function, start, end, steps=40):
    values = [start + (end - start) * step / steps for step in range(steps + 1)]
    return [function(value) for value in values]


WHITE, BLACK, RED, YELLOW = (255, 255, 255), (35, 35, 40), (200, 40, 45), (250, 205, 70)


def lighthouse():
    picture = Picture((120, 160, 205))
    picture.shape((245, 235, 170), [(120, 62), (0, 20), (0, 74)])  # the beams
    picture.shape((245, 235, 170), [(120, 62), (240, 20), (240, 74)])
    picture.shape((40, 90, 140), [(0, 185), (240, 185), (240, 240), (0, 240)])  # the sea
    for y in (200, 216, 230):
        for x in range(-10, 240, 48):
            picture.stroke((95, 145, 190), 2, (x + y % 20, y), (x + y % 20 + 18, y))
    rock = [(40, 240), (58, 205), (85, 192), (100, 182), (142, 182), (160, 196), (185, 204), (205, 240)]
    picture.shape((95, 85, 80), rock)
    picture.shape((120, 108, 100), [(85, 192), (100, 182), (142, 182), (128, 200), (98, 206)])

    def tower(top, bottom, colour):
        def half(y):
            return 13 + (y - 80) * 0.11

        corners = [(120 - half(top), top), (120 + half(top), top), (120 + half(bottom), bottom), (120 - half(bottom), bottom)]
        picture.shape(colour, corners)

    tower(80, 186, WHITE)
    for top in (90, 126, 162):
        tower(top, top + 18, RED)
    for y in (114, 150):
        picture.shape(BLACK, [(117, y), (123, y), (123, y + 9), (117, y + 9)])
    picture.shape(BLACK, [(100, 76), (140, 76), (140, 82), (100, 82)])  # gallery and railing
    for x in range(101, 142, 6):
        picture.stroke(BLACK, 1.2, (x, 76), (x, 68))
    picture.stroke(BLACK, 1.2, (101, 68), (139, 68))
    picture.shape(YELLOW, [(110, 52), (130, 52), (130, 76), (110, 76)])  # the lamp
    for x in (110, 120, 130):
        picture.stroke(BLACK, 1.5, (x, 52), (x, 76))
    picture.shape(RED, [(105, 53), (135, 53), (120, 36)])
    picture.disc(BLACK, 120, 35, 5)
    return picture


def sailing_boat():
    picture = Picture((175, 215, 240))
    picture.disc(YELLOW, 200, 42, 42)
    for x, y in ((45, 40), (62, 34), (78, 42)):
        picture.disc(WHITE, x, y, 30, 20)
    picture.shape((45, 110, 165), [(0, 178), (240, 178), (240, 240), (0, 240)])
    picture.shape(WHITE, [(124, 30), (124, 152), (200, 152)])  # main sail
    picture.shape((220, 80, 60), [(114, 44), (114, 152), (58, 152)])  # jib
    picture.stroke((90, 60, 35), 5, (119, 22), (119, 168))  # mast
    picture.shape(RED, [(121, 20), (143, 26), (121, 33)])  # pennant
    picture.shape((125, 75, 40), [(42, 162), (208, 162), (184, 198), (70, 198)])  # hull
    picture.stroke((235, 225, 205), 4, (46, 167), (204, 167))
    for x in (92, 120, 148):
        picture.disc((60, 35, 20), x, 181, 9)
        picture.disc((190, 220, 235), x, 181, 6)
    picture.shape((45, 110, 165), [(0, 192), (240, 192), (240, 240), (0, 240)])
    for y in (192, 210, 226):
        wave = curve(lambda x, y=y: (x, y + 3 * math.sin(x / 9 + y)), -5, 245, 100)
        picture.stroke((120, 175, 215), 2.5, *wave)
    return picture


def bicycle():
    picture = Picture((238, 234, 222))
    picture.shape((170, 190, 150), [(0, 196), (240, 196), (240, 240), (0, 240)])
    picture.stroke((120, 140, 105), 2, (0, 196), (240, 196))
    rear, front, crank, seat, head = (66, 150), (176, 150), (112, 152), (97, 92), (157, 88)
    for x, y in (rear, front):
        for spoke in range(12):
            angle = math.pi * spoke / 6
            picture.stroke((150, 150, 155), 1, (x, y), (x + 40 * math.cos(angle), y + 40 * math.sin(angle)))
        picture.ring(BLACK, x, y, 92, 5)
        picture.ring((150, 150, 155), x, y, 82, 2)
        picture.disc(BLACK, x, y, 10)
    frame = (30, 95, 160)
    for tube in ((rear, crank), (rear, seat), (crank, seat), (crank, head), (seat, head)):
        picture.stroke(frame, 6, *tube)
    picture.stroke(frame, 5, (153, 74), head, front)  # fork
    picture.stroke(BLACK, 5, (153, 74), (166, 66), (178, 70), (176, 80))  # handlebar
    picture.stroke((110, 110, 115), 4, seat, (92, 76))
    picture.shape(BLACK, [(72, 72), (112, 72), (108, 78), (90, 82), (76, 80)])  # saddle
    picture.ring((110, 110, 115), *crank, 28, 4)
    picture.stroke((110, 110, 115), 4, (100, 136), (124, 168))
    picture.stroke(BLACK, 5, (93, 136), (107, 136))  # pedals
    picture.stroke(BLACK, 5, (117, 168), (131, 168))
    picture.stroke(BLACK, 1.5, (66, 145), (112, 139))  # chain
    picture.stroke(BLACK, 1.5, (66, 155), (112, 165))
    return picture


def cactus():
    picture = Picture((250, 205, 150))
    picture.disc((240, 120, 60), 188, 66, 52)
    picture.shape((215, 150, 105), [(0, 170), (50, 128), (78, 150), (120, 112), (170, 168), (240, 140), (240, 190), (0, 190)])
    picture.shape((230, 185, 125), [(0, 178), (240, 178), (240, 240), (0, 240)])
    picture.disc((205, 160, 105), 126, 212, 120, 16)  # shadow
    green, dark = (60, 130, 75), (40, 95, 55)
    picture.stroke(green, 24, (118, 142), (74, 142), (70, 134), (70, 98))
    picture.stroke(green, 22, (118, 122), (158, 122), (163, 114), (163, 76))
    picture.stroke(green, 38, (118, 60), (118, 206))
    for x in (108, 118, 128):
        picture.stroke(dark, 2, (x, 52 if x == 118 else 56), (x, 210))
    picture.stroke(dark, 2, (70, 96), (70, 134), (76, 142), (96, 142))
    picture.stroke(dark, 2, (163, 74), (163, 114), (157, 122), (140, 122))
    for y in range(62, 206, 16):  # spines
        for x in (99, 137):
            side = -6 if x == 99 else 6
            picture.stroke((245, 240, 215), 1.3, (x, y), (x + side, y - 3))
            picture.stroke((245, 240, 215), 1.3, (x, y), (x + side, y + 3))
    for y in (96, 110, 124):
        picture.stroke((245, 240, 215), 1.3, (59, y), (53, y - 2))
        picture.stroke((245, 240, 215), 1.3, (174, y - 18), (180, y - 20))
    for x, y in ((118, 40), (110, 43), (126, 43)):
        picture.disc((225, 70, 120), x, y, 10)  # blossom
    return picture


def teapot():
    picture = Picture((225, 215, 230))
    picture.shape((150, 105, 70), [(0, 188), (240, 188), (240, 240), (0, 240)])
    picture.stroke((120, 80, 50), 2, (0, 188), (240, 188))
    picture.disc((125, 85, 55), 118, 204, 150, 14)  # shadow
    body, shade = (60, 120, 160), (45, 95, 130)
    for x in (112, 128):  # steam
        picture.stroke(WHITE, 3, *curve(lambda y, x=x: (x + 5 * math.sin(y / 6), y), 22, 56))
    picture.shape(shade, ellipse(56, 140, 34, 34), ellipse(56, 140, 23, 23))  # handle
    picture.shape(body, [(158, 165), (165, 130), (192, 112), (204, 88), (222, 88), (214, 124), (190, 160), (168, 182)])  # spout
    picture.disc(shade, 213, 88, 20, 7)
    picture.disc(body, 118, 146, 124, 108)
    picture.shape(body, [(84, 180), (152, 180), (146, 203), (90, 203)])
    picture.disc(shade, 118, 98, 74, 16)  # lid
    picture.shape(body, [p for p in ellipse(118, 97, 34, 20) if p[1] <= 97.5])
    picture.disc(YELLOW, 118, 74, 15)
    picture.stroke(WHITE, 4, *curve(lambda a: (118 + 48 * math.cos(a), 146 + 40 * math.sin(a)), 3.4, 4.1))
    for corner in range(5):  # a flower painted on it
        angle = 2 * math.pi * corner / 5
        picture.disc(WHITE, 122 + 13 * math.cos(angle), 150 + 13 * math.sin(angle), 17)
    picture.disc(YELLOW, 122, 150, 14)
    return picture


# Names that tell nothing: only a look at the picture does.
PICTURES = {
    "b7qd2/w4mzk.png": teapot,
    "f3xn8/h9vtc.png": bicycle,
    "k5rw1/p2ysj.png": cactus,
    "m8gt4/d6lqx.png": lighthouse,
    "z1hc9/n3fbv.png": sailing_boat,
}


def entries():
    """Names and contents of the archive, folders first."""
    folders = ["filesystem/", "filesystem/pictures/"]
    folders += [f"filesystem/pictures/{name.split('/')[0]}/" for name in PICTURES]
    yield from ((folder, b"") for folder in folders)
    for name, draw in PICTURES.items():
        yield f"filesystem/pictures/{name}", draw().png()


def pack():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries():
            entry = zipfile.ZipInfo(name, date_time=(2025, 1, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, on whichever system this runs
            entry.external_attr = (0o40755 << 16) | 0x10 if name.endswith("/") else 0o100644 << 16
            archive.writestr(entry, content)
    return packed.getvalue()


def unpacked(packed):
    """What counts in an archive: names, and for pictures the pixels."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            start = content.find(b"IDAT")
            if start >= 0:
                (length,) = struct.unpack(">I", content[start - 4 : start])
                content = zlib.decompress(content[start + 4 : start + 4 + length])
            yield name, content


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if list(unpacked(ARCHIVE.read_bytes())) != list(unpacked(pack())):
            sys.exit(f"{ARCHIVE} is not what this script draws")
    else:
        ARCHIVE.write_bytes(pack())
