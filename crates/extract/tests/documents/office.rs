//! Workbooks, word processor documents, presentations.

use extract::{Format, Limits, PartKind};

use crate::{package, read};

const WORKBOOK_RELS: &str = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="r2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet2.xml"/>
<Relationship Id="r3" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet3.xml"/>
<Relationship Id="r4" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/>
</Relationships>"#;

/// Number format 14 is a date, 0 is none.
const STYLES: &str = r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>"#;

fn sheet(cells: &str) -> String {
    format!(
        r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{cells}</sheetData></worksheet>"#
    )
}

/// Sheets `Data`, `Secret` (hidden), `More`.
pub(crate) fn workbook(data: &str, more: &str) -> Vec<u8> {
    let workbook = r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>
<sheet name="Data" sheetId="1" r:id="r1"/><sheet name="Secret" sheetId="2" state="hidden" r:id="r2"/><sheet name="More" sheetId="3" r:id="r3"/></sheets></workbook>"#;
    package(&[
        (
            "_rels/.rels",
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
        ),
        ("xl/workbook.xml", workbook),
        ("xl/_rels/workbook.xml.rels", WORKBOOK_RELS),
        ("xl/styles.xml", STYLES),
        ("xl/worksheets/sheet1.xml", &sheet(data)),
        (
            "xl/worksheets/sheet2.xml",
            &sheet(r#"<row r="1"><c r="A1"><v>666</v></c></row>"#),
        ),
        ("xl/worksheets/sheet3.xml", &sheet(more)),
    ])
}

/// Pitfall A14: formulas without a stored value, and with a stale one.
#[test]
fn formulas_are_shown_and_stored_values_are_marked() {
    let cells = |a3: &str| {
        format!(
            r#"<row r="1"><c r="A1"><v>2</v></c></row><row r="2"><c r="A2"><v>40</v></c></row><row r="3"><c r="A3">{a3}</c></row>"#
        )
    };
    let text = |a3: &str| {
        let document = read("x.xlsx", &workbook(&cells(a3), "")).unwrap();
        document.parts[0].text.clone()
    };
    let missing = text("<f>A1+A2</f>");
    assert_eq!(missing, "2\n40\n{=A1+A2; not calculated}\n");
    let stale = text("<f>A1+A2</f><v>7</v>");
    assert_eq!(
        stale,
        "2\n40\n7 {=A1+A2; stored value, not calculated here}\n"
    );
    // A change of nothing but the formula is a change.
    assert_ne!(stale, text("<f>A1*A2</f><v>7</v>"));
}

#[test]
fn cells_keep_their_columns_and_kinds() {
    let data = r#"<row r="1"><c r="A1" t="inlineStr"><is><t>Name &amp; place</t></is></c><c r="C1" t="b"><v>1</v></c></row>
<row r="3"><c r="B3" s="1"><v>45658</v></c><c r="C3" t="e"><v>#DIV/0!</v></c></row>
<row r="20"><c r="A20" t="str"><f>UPPER("a")</f><v>A</v></c><c r="B20"><v>1234.5</v></c></row>"#;
    let more = r#"<row r="1"><c r="A1" t="inlineStr"><is><t>two
lines</t></is></c><c r="B1"><v>1</v></c></row>"#;
    let document = read("dir/Book.XLSM", &workbook(data, more)).unwrap();
    assert_eq!(document.format, Format::Xlsx);
    let parts: Vec<(usize, PartKind, &str, &str)> = document
        .parts
        .iter()
        .map(|part| {
            (
                part.index,
                part.kind,
                part.title.as_str(),
                part.text.as_str(),
            )
        })
        .collect();
    assert_eq!(
        parts,
        [
            (
                0,
                PartKind::Sheet,
                "Data",
                "Name & place\t\tTRUE\n\n\t2025-01-01\t#DIV/0!\n[16 empty rows]\nA {=UPPER(\"a\"); stored value, not calculated here}\t1234.5\n"
            ),
            (2, PartKind::Sheet, "More", "two⏎lines\t1\n"),
        ]
    );
    assert!(
        document
            .text
            .contains("=== Sheet: More ===\ntwo⏎lines\t1\n")
    );
    assert!(!document.text.contains("666"));
    assert_eq!(document.notes, ["hidden sheets are left out: Secret"]);
}

#[test]
fn a_cell_in_the_last_corner_costs_nothing() {
    let data = r#"<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>"#;
    let document = read("x.xlsx", &workbook(data, "")).unwrap();
    assert_eq!(document.parts[0].text, "1\n");
    assert!(
        document.notes[0].contains("limits `rows`, `columns`"),
        "{:?}",
        document.notes
    );
}

const W: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006""#;

fn docx(body: &str, comments: Option<&str>) -> Vec<u8> {
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><w:document {W}><w:body>{body}</w:body></w:document>"
    );
    let comments = comments.map(|c| format!("<w:comments {W}>{c}</w:comments>"));
    let mut files = vec![("word/document.xml", document.as_str())];
    if let Some(comments) = &comments {
        files.push(("word/comments.xml", comments));
    }
    package(&files)
}

#[test]
fn paragraphs_and_tables_stay_in_order_and_changes_count_as_accepted() {
    let p = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let body = [
        r#"<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Terms</w:t></w:r></w:p>"#.to_owned(),
        p("Fish &amp; chips &#8364;5"),
        "<w:p></w:p>".to_owned(),
        format!(
            "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}{}</w:tc></w:tr><w:tr><w:tc>{}</w:tc><w:tc><w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl><w:p/></w:tc></w:tr></w:tbl>",
            p("a"), p("b"), p("c"), p("d"), p("x"), p("y")
        ),
        r#"<w:p><w:r><w:t xml:space="preserve">The price is </w:t></w:r><w:del w:author="A"><w:r><w:delText>100</w:delText></w:r></w:del><w:ins w:author="A"><w:r><w:t>120</w:t></w:r></w:ins><w:moveFrom><w:r><w:t>gone</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:tab/><w:t>here</w:t></w:r></w:moveTo></w:p>"#.to_owned(),
        r#"<w:p><w:r><mc:AlternateContent><mc:Choice><w:t>once</w:t></mc:Choice><mc:Fallback><w:t>once</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>"#.to_owned(),
    ]
    .concat();
    let document = read("a.docx", &docx(&body, None)).unwrap();
    assert_eq!(
        document.text,
        "## Terms\nFish & chips €5\na\tb c\nd\tx | y\nThe price is 120\there\nonce\n"
    );
    assert_eq!(document.comments, None);
}

#[test]
fn comments_stand_at_the_end_with_author_date_and_place() {
    let body = r#"<w:p><w:commentRangeStart w:id="0"/><w:r><w:t>The fee is 5.</w:t></w:r><w:commentRangeEnd w:id="0"/></w:p>"#;
    let comments = r#"<w:comment w:id="0" w:author="Ann" w:date="2025-01-02T03:04:05Z"><w:p><w:r><w:t>Too</w:t></w:r></w:p><w:p><w:r><w:t>low</w:t></w:r></w:p></w:comment>"#;
    let document = read("a.docx", &docx(body, Some(comments))).unwrap();
    let expected =
        "=== DOCUMENT COMMENTS ===\nAnn (2025-01-02T03:04:05Z) on \"The fee is 5.\": Too low\n";
    assert_eq!(document.comments.as_deref(), Some(expected));
    assert_eq!(document.text, format!("The fee is 5.\n{expected}"));
}

#[test]
fn slides_come_in_the_order_of_the_presentation_with_notes() {
    let ns = r#"xmlns:a="a" xmlns:p="p" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let text = |t: &str| format!("<a:p><a:r><a:t>{t}</a:t></a:r></a:p>");
    let shape = |kind: &str, t: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:nvPr>{kind}</p:nvPr></p:nvSpPr><p:txBody>{}</p:txBody></p:sp>",
            text(t)
        )
    };
    let slide = |shapes: &str| {
        format!("<p:sld {ns}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>")
    };
    let rels = |entries: &str| format!("<Relationships>{entries}</Relationships>");
    let bytes = package(&[
        (
            "ppt/presentation.xml",
            &format!("<p:presentation {ns}><p:sldIdLst><p:sldId id=\"256\" r:id=\"rB\"/><p:sldId id=\"257\" r:id=\"rA\"/></p:sldIdLst></p:presentation>"),
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            &rels(r#"<Relationship Id="rA" Type="x/slide" Target="slides/slide1.xml"/><Relationship Id="rB" Type="x/slide" Target="/ppt/slides/slide2.xml"/>"#),
        ),
        ("ppt/slides/slide1.xml", &slide(&shape("", "Just text"))),
        (
            "ppt/slides/slide2.xml",
            &slide(&[
                shape("<p:ph type=\"body\"/>", "A point"),
                shape("<p:ph type=\"ctrTitle\"/>", "The title"),
                format!("<p:graphicFrame><a:tbl><a:tr><a:tc>{}</a:tc><a:tc>{}</a:tc></a:tr></a:tbl></p:graphicFrame>", text("k"), text("v")),
            ].concat()),
        ),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            &rels(r#"<Relationship Id="r1" Type="x/notesSlide" Target="../notesSlides/n.xml"/>"#),
        ),
        (
            "ppt/notesSlides/n.xml",
            &slide(&[shape("<p:ph type=\"sldNum\"/>", "1"), shape("<p:ph idx=\"1\"/>", "Say hello")].concat()),
        ),
    ]);
    let document = read("deck.pptx", &bytes).unwrap();
    assert_eq!(
        document.text,
        "=== Slide 1: The title ===\nA point\nThe title\nk\tv\n--- Notes ---\nSay hello\n=== Slide 2: Just text ===\nJust text\n"
    );
    assert_eq!(document.parts[1].title, "Just text");
    assert_eq!(document.parts[1].index, 1);
    let limits = Limits {
        parts: 1,
        ..Limits::default()
    };
    let document = extract::extract("deck.pptx", &bytes, &limits).unwrap();
    assert!(document.truncated);
    assert_eq!(document.notes, ["1 of 2 slides are read"]);
}
