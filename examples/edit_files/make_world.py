"""Packs the small office of this task into original_snapshot.zip.

    python3 make_world.py            writes the archive
    python3 make_world.py --check    compares the archive with what would be written

Needs nothing but Python 3. Nothing is compressed and times are fixed, so the bytes are always the same.
"""

import io
import sys
import zipfile
from pathlib import Path

ARCHIVE = Path(__file__).parent / "original_snapshot.zip"

MEETING_4_MARCH = """\
# Meeting, 4 March 2025

Present: Ines, Marek, Jo

- The offer for Halden Library goes out this month. Jo has a draft; the price is still open.
- Marek asks everybody to enter the expenses of the first quarter by the end of the month.
- The old offer from 2024 only causes mix-ups. It can go.
"""

MEETING_11_MARCH = """\
# Meeting, 11 March 2025

Present: Ines, Jo

- Halden Library: we offer the shelving for 4850 EUR, delivery included.
- Ines wants one page on the expenses of the first quarter: a total for each category and one for all.
- The floor plan has been dealt with and belongs in the archive for 2025.
"""

EXPENSES = """\
date,category,item,amount_eur
2025-01-09,travel,Train to Bergen,212.50
2025-01-15,software,Drawing program,240.00
2025-01-28,furniture,Two desks,1180.00
2025-02-06,travel,Taxi,38.00
2025-02-15,software,Drawing program,240.00
2025-02-20,catering,Open day,96.40
2025-03-03,travel,Train to Oslo,250.00
2025-03-15,software,Drawing program,240.00
"""

OFFER = """\
# Offer: shelving for Halden Library

Twelve oak shelves, 2.10 m high, with ladders.

Price: TO BE SET, delivery included.

Valid for 60 days.
"""

OFFER_2024 = """\
# Offer: shelving for Halden Library (2024)

Ten pine shelves, 1.80 m high.

Price: 3900 EUR.
"""

FLOOR_PLAN = """\
Halden Library, reading room

12.4 m x 8.0 m, door in the west wall, windows to the south.
Shelves along the north and east walls.
"""

LEASE = "Lease of the office, signed 2 September 2024, runs until 2029.\n"

FILES = {
    "archive/2024/lease.txt": LEASE,
    "drafts/offer_halden.md": OFFER,
    "drafts/offer_halden_2024.md": OFFER_2024,
    "finance/expenses_2025_q1.csv": EXPENSES,
    "inbox/floor_plan.txt": FLOOR_PLAN,
    "notes/2025-03-04.md": MEETING_4_MARCH,
    "notes/2025-03-11.md": MEETING_11_MARCH,
}


def entries():
    """Names and contents of the archive, folders first."""
    folders = {"filesystem/"}
    for name in FILES:
        parts = name.split("/")[:-1]
        folders.update(f"filesystem/{'/'.join(parts[:depth])}/" for depth in range(1, len(parts) + 1))
    yield from ((folder, "") for folder in sorted(folders))
    yield from ((f"filesystem/{name}", content) for name, content in FILES.items())


def pack():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries():
            entry = zipfile.ZipInfo(name, date_time=(2025, 4, 1, 0, 0, 0))
            entry.create_system = 3  # Unix, on whichever system this runs
            entry.external_attr = (0o40755 << 16) | 0x10 if name.endswith("/") else 0o100644 << 16
            archive.writestr(entry, content.encode())
    return packed.getvalue()


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if ARCHIVE.read_bytes() != pack():
            sys.exit(f"{ARCHIVE} is not what this script packs")
    else:
        ARCHIVE.write_bytes(pack())
