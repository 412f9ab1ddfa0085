"""Makes documents with the libraries and programs that people and agents use, and writes down what those libraries
themselves read from them.

    python make.py FOLDER          (openpyxl python-docx python-pptx pandas reportlab pypdf xlwt xlrd odfpy)

FOLDER/read.json: file name to what is in it. LibreOffice converts some of them where `soffice` is on PATH; the
key `missing` names it where it is not.
"""

import datetime
import json
import pathlib
import shutil
import subprocess
import sys

import docx
import openpyxl
import pandas
import pptx
import pypdf
import xlwt
from openpyxl.styles import numbers
from pptx.util import Inches
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen import canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

OUT = pathlib.Path(sys.argv[1])
READ = {"missing": []}
WORDS = "Zürich naïve €5 “quoted” 東京 Ω≈ç"


# ---- spreadsheets


def cell(value):
    """A value as a spreadsheet shows it without a number format."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        day = value.strftime("%Y-%m-%d")
        return day if value.time() == datetime.time(0) else value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        return value.strftime("%H:%M:%S")
    return str(value)


def make_workbook():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data & more"
    sheet.append(["Item", "Price", "Share", "When", "Ok"])
    sheet.append(["Apple", 1234.5, 0.125, datetime.date(2025, 3, 4), True])
    sheet.append([WORDS, -7, 1e-7, datetime.datetime(2025, 3, 5, 6, 7, 8), False])
    sheet["B4"] = "=SUM(B2:B3)"
    sheet["C4"] = '=IF(B4>1000,"large","small")'
    sheet["A9"] = "after a gap"
    sheet["G2"] = "far right"
    sheet["B2"].number_format = numbers.FORMAT_NUMBER_COMMA_SEPARATED1
    second = book.create_sheet("Zweite Tabelle")
    for number in range(200):
        second.append([number, number * number, f"row {number}"])
    third = book.create_sheet("Hidden")
    third["A1"] = "secret"
    third.sheet_state = "hidden"
    book.save(OUT / "openpyxl.xlsx")

    old = xlwt.Workbook()
    sheet = old.add_sheet("Old")
    for column, value in enumerate(["Name", WORDS, 12.5, 3, True]):
        sheet.write(0, column, value)
    sheet.write(2, 1, xlwt.Formula("C1*2"))
    hidden = old.add_sheet("Hidden")
    hidden.visibility = 1
    hidden.write(0, 0, "secret")
    old.save(OUT / "xlwt.xls")

    frame = pandas.DataFrame({"Name": ["Ann", WORDS], "Amount": [1.5, 2], "Day": pandas.to_datetime(["2025-01-02", "2025-12-31"])})
    frame.to_excel(OUT / "pandas.xlsx", index=False, sheet_name="Frame")


def read_workbook(path):
    """Visible sheets by title, as lists of rows; with the formulas, where the library reads them."""
    sheets = []
    if path.suffix == ".xlsx":
        values = openpyxl.load_workbook(path, data_only=True)
        formulas = openpyxl.load_workbook(path)
        for sheet in values.worksheets:
            if sheet.sheet_state != "visible":
                continue
            rows = [[cell(c.value) for c in row] for row in sheet.iter_rows()]
            found = {}
            for row in formulas[sheet.title].iter_rows():
                for c in row:
                    if isinstance(c.value, str) and c.value.startswith("="):
                        found[c.coordinate] = c.value[1:]
            sheets.append({"title": sheet.title, "rows": rows, "formulas": found})
        hidden = [s.title for s in values.worksheets if s.sheet_state != "visible"]
    else:
        frames = pandas.read_excel(path, sheet_name=None, header=None, dtype=object)
        hidden = ["Hidden"]
        for title, frame in frames.items():
            if title in hidden:
                continue
            rows = [[cell(value.to_pydatetime() if isinstance(value, pandas.Timestamp) else value) for value in row] for row in frame.values.tolist()]
            sheets.append({"title": title, "rows": rows, "formulas": None})
    return {"kind": "workbook", "sheets": sheets, "hidden": hidden}


# ---- text tables


def make_tables():
    frame = pandas.DataFrame({"Name": ["Ann", "Bo, the \"second\"", "two\nlines"], "Città": ["Zürich", "", "Malmö"], "n": ["1", "2,5", "3"]})
    latin = {"encoding": "latin-1"}
    for name, options in {
        "utf8.csv": {"encoding": "utf-8"},
        "bom.csv": {"encoding": "utf-8-sig"},
        "utf16.csv": {"encoding": "utf-16"},
        "latin1.csv": latin,
        "cp1252.csv": {"encoding": "cp1252"},
        "semicolon.csv": {"encoding": "utf-8", "sep": ";"},
        "tabs.tsv": {"encoding": "utf-8", "sep": "\t"},
        "crlf.csv": {"encoding": "utf-8", "lineterminator": "\r\n"},
    }.items():
        path = OUT / name
        frame.to_csv(path, index=False, **options)
        encoding, separator = options["encoding"], options.get("sep", ",")
        back = pandas.read_csv(path, dtype=str, keep_default_na=False, encoding=encoding, sep=separator)
        READ[name] = {"kind": "table", "rows": [list(back.columns)] + back.values.tolist()}


# ---- texts


def make_document():
    document = docx.Document()
    document.add_heading("Annual report", 0)
    document.add_heading("Summary", 1)
    paragraph = document.add_paragraph("Plain, ")
    paragraph.add_run("bold").bold = True
    paragraph.add_run(f" and {WORDS}")
    document.add_paragraph("first point", style="List Bullet")
    document.add_paragraph("second point", style="List Bullet")
    table = document.add_table(3, 2)
    for row in range(3):
        for column in range(2):
            table.cell(row, column).text = f"r{row}c{column}"
    document.add_paragraph("After the table")
    document.sections[0].header.paragraphs[0].text = "Confidential"
    document.save(OUT / "python-docx.docx")


def read_document(path):
    document = docx.Document(path)
    lines = []
    for block in document.iter_inner_content():
        if isinstance(block, docx.table.Table):
            lines += ["\t".join(c.text for c in row.cells) for row in block.rows]
        elif block.text.strip():
            lines.append(block.text.strip())
    header = [p.text for p in document.sections[0].header.paragraphs if p.text.strip()]
    return {"kind": "document", "lines": lines, "header": header}


def make_slides():
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = f"Plan {WORDS}"
    slide.placeholders[1].text = "Point one\nPoint two"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "in a group"
    slide.notes_slide.notes_text_frame.text = "Say this"
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "Table"
    table = second.shapes.add_table(2, 2, 0, Inches(2), Inches(4), Inches(1)).table
    for row in range(2):
        for column in range(2):
            table.cell(row, column).text = f"r{row}c{column}"
    deck.save(OUT / "python-pptx.pptx")


def shape_lines(shapes):
    for shape in shapes:
        if shape.shape_type == pptx.enum.shapes.MSO_SHAPE_TYPE.GROUP:
            yield from shape_lines(shape.shapes)
        elif shape.has_table:
            for row in shape.table.rows:
                yield "\t".join(c.text for c in row.cells)
        elif shape.has_text_frame:
            yield from (p.text.strip() for p in shape.text_frame.paragraphs if p.text.strip())


def read_slides(path):
    slides = []
    for slide in pptx.Presentation(path).slides:
        notes = slide.notes_slide.notes_text_frame.text if slide.has_notes_slide and slide.notes_slide.notes_text_frame else ""
        slides.append({"lines": list(shape_lines(slide.shapes)), "notes": notes.strip()})
    return {"kind": "slides", "slides": slides}


def make_pdf():
    page = canvas.Canvas(str(OUT / "canvas.pdf"), pagesize=A4)
    for number in range(3):
        page.drawString(72, 700, f"Page number {number + 1}")
        page.drawString(72, 650, "Total 41,250.00 EUR")
        page.showPage()
    page.save()
    # Opens without a password, as many documents do that are only not to be changed.
    page = canvas.Canvas(str(OUT / "encrypted.pdf"), encrypt=StandardEncryption("", ownerPassword="owner", canModify=0))
    page.drawString(72, 700, "Read by everybody 7")
    page.save()
    style = getSampleStyleSheet()["BodyText"]
    flow = [Paragraph("A paragraph of <b>flowing</b> text. " * 30, style), Table([["k", "v"], ["a", "1"]])]
    SimpleDocTemplate(str(OUT / "platypus.pdf")).build(flow)


def read_pdf(path):
    return {"kind": "pdf", "pages": ["".join(page.extract_text().split()) for page in pypdf.PdfReader(path).pages]}


# ---- LibreOffice


def convert(source, target, name):
    """FOLDER/source in another format, as FOLDER/name."""
    home = OUT / "home"
    folder = OUT / "converted"
    subprocess.run(
        ["soffice", f"-env:UserInstallation=file://{home}", "--headless", "--convert-to", target, "--outdir", folder, OUT / source],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120,
    )
    made = folder / (pathlib.Path(source).stem + "." + target.split(":")[0])
    made.rename(OUT / name)


make_workbook()
make_tables()
make_document()
make_slides()
make_pdf()
COPIES = {}
workbooks = ["openpyxl.xlsx", "pandas.xlsx", "xlwt.xls"]
documents = ["python-docx.docx"]
decks = ["python-pptx.pptx"]
pdfs = ["canvas.pdf", "encrypted.pdf", "platypus.pdf"]
if shutil.which("soffice"):
    convert("openpyxl.xlsx", "xlsx", "libreoffice.xlsx")
    convert("openpyxl.xlsx", "ods", "libreoffice.ods")
    convert("openpyxl.xlsx", "xls", "libreoffice.xls")
    convert("python-docx.docx", "docx", "libreoffice.docx")
    convert("python-docx.docx", "pdf", "libreoffice.pdf")
    convert("python-pptx.pptx", "pptx", "libreoffice.pptx")
    # Formats that no library reads: what is in them is what went in.
    for source, targets in (("python-docx.docx", ("odt", "doc")), ("python-pptx.pptx", ("odp", "ppt"))):
        for target in targets:
            convert(source, target, f"libreoffice.{target}")
            COPIES[f"libreoffice.{target}"] = source
    workbooks += ["libreoffice.xlsx", "libreoffice.ods", "libreoffice.xls"]
    documents.append("libreoffice.docx")
    decks.append("libreoffice.pptx")
    pdfs.append("libreoffice.pdf")
else:
    READ["missing"].append("soffice")
for names, read in ((workbooks, read_workbook), (documents, read_document), (decks, read_slides), (pdfs, read_pdf)):
    for name in names:
        READ[name] = read(OUT / name)
for name, source in COPIES.items():
    READ[name] = READ[source]
(OUT / "read.json").write_text(json.dumps(READ, ensure_ascii=False, indent=1))
