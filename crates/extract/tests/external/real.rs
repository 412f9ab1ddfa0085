//! The real programs, where they are installed.

use extract::{
    DrawError, DrawnPages, ExternalProgram, IsolationRule, Limits, draw, laid_out_pages,
};

use testkit::documents::{text_document, text_pages};

use crate::DOCX;

const PPTX: &[u8] = include_bytes!("../fixtures/python-pptx.pptx");
const XLSX: &[u8] = include_bytes!("../fixtures/openpyxl.xlsx");
const PDF: &[u8] = include_bytes!("../fixtures/reportlab.pdf");

fn installed(programs: &[ExternalProgram]) -> bool {
    let path = Limits::default().program_path;
    programs.iter().all(|program| {
        let name = format!("`{}` of {}", program.name(), program.package());
        testkit::available(&name, program.find(&path).is_some())
    })
}

fn drawn(name: &str, bytes: &[u8], isolation: IsolationRule) -> DrawnPages {
    let limits = Limits {
        isolation,
        ..Limits::default()
    };
    draw(name, bytes, 20, &limits).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The pixels of a page.
fn pixels(drawn: &DrawnPages, at: usize) -> image::RgbImage {
    use base64::Engine as _;
    let uri = drawn.pictures[at].1.data_uri.as_ref().unwrap();
    let data = uri.strip_prefix("data:image/png;base64,").unwrap();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data)
        .unwrap();
    image::load_from_memory(&bytes).unwrap().to_rgb8()
}

#[test]
fn a_pdf_has_its_pages_at_150_dots_per_inch() {
    if !installed(&[ExternalProgram::Pdftoppm]) {
        return;
    }
    for isolation in [IsolationRule::Off, IsolationRule::WherePossible] {
        let drawn = drawn("x.pdf", PDF, isolation);
        assert_eq!((drawn.pictures.len(), drawn.more), (2, false));
        // A4: 210 mm by 297 mm.
        let page = pixels(&drawn, 0);
        assert_eq!(page.height(), 1754);
        assert!((1239..=1241).contains(&page.width()), "{}", page.width());
        // There are letters on it.
        assert!(page.pixels().any(|pixel| pixel.0 == [0, 0, 0]));
    }
    let error = draw("x.pdf", &PDF[..60], 20, &Limits::default()).unwrap_err();
    assert!(matches!(error, DrawError::Document(_)), "{error}");
}

#[test]
fn office_documents_are_laid_out_and_drawn() {
    if !installed(ExternalProgram::to_draw("docx")) {
        return;
    }
    let document = drawn("x.docx", DOCX, IsolationRule::WherePossible);
    assert_eq!((document.pictures.len(), document.more), (1, false));
    // The page of python-docx's template is Letter, 8.5 by 11 inches.
    let page = pixels(&document, 0);
    assert_eq!(page.height(), 1754);
    assert!((1354..=1356).contains(&page.width()), "{}", page.width());
    let slides = drawn("x.pptx", PPTX, IsolationRule::Off);
    let texts = extract::extract("x.pptx", PPTX, &Limits::default()).unwrap();
    assert_eq!(slides.pictures.len(), texts.parts.len());
    // The slides of python-pptx's template are 10 by 7.5 inches.
    let slide = pixels(&slides, 0);
    assert_eq!(slide.width(), 1754);
    assert!(
        (1315..=1317).contains(&slide.height()),
        "{}",
        slide.height()
    );
    let sheets = drawn("x.xlsx", XLSX, IsolationRule::WherePossible);
    assert!(!sheets.pictures.is_empty());
    // What is no document at all is the document's fault, not the program's.
    let error = draw("x.docx", b"PK\x03\x04 no zip", 20, &Limits::default()).unwrap_err();
    assert!(matches!(error, DrawError::Document(_)), "{error}");
}

#[test]
fn pages_of_a_text_document_are_counted_after_layout() {
    if !installed(ExternalProgram::to_draw("docx")) {
        return;
    }
    let limits = Limits::default();
    for count in [1, 3] {
        assert_eq!(
            laid_out_pages("a.docx", &text_pages(count), &limits),
            Ok(count)
        );
    }
    // Drawn up to a page, it is known that there are more; and what is named wrongly is drawn too.
    let drawn = draw("a.docx", &text_pages(3), 2, &limits).unwrap();
    assert_eq!((drawn.pictures.len(), drawn.more), (2, true));
    let drawn = draw(
        "a.xls",
        b"<html><body><p>Words</p></body></html>",
        2,
        &limits,
    )
    .unwrap();
    assert_eq!((drawn.pictures.len(), drawn.more), (1, false));
    let error = laid_out_pages("a.pdf", PDF, &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "documents of type `pdf` are not laid out"
    );
    let nowhere = Limits {
        program_path: "/nowhere".into(),
        ..limits
    };
    let error = laid_out_pages("a.docx", DOCX, &nowhere).unwrap_err();
    assert_eq!(error, DrawError::Missing(ExternalProgram::Soffice));
}

/// A document with a picture that lies elsewhere.
fn linking(target: &str) -> Vec<u8> {
    let picture = r#"<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"><w:body><w:p><w:r><w:t>Words</w:t></w:r></w:p><w:p><w:r><w:drawing><wp:inline><wp:extent cx="2000000" cy="2000000"/><wp:docPr id="1" name="p"/><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="p"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:link="r9"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="2000000" cy="2000000"/></a:xfrm><a:prstGeom prst="rect"/></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p></w:body></w:document>"#;
    let relation = format!(
        r#"<Relationship Id="r9" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="{target}" TargetMode="External"/>"#
    );
    text_document(picture, &relation)
}

/// What an agent writes must not show files of the machine to the judge.
#[test]
fn links_to_other_files_are_not_followed() {
    if !installed(ExternalProgram::to_draw("docx")) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.png");
    let red = image::RgbImage::from_pixel(64, 64, image::Rgb([255, 0, 0]));
    red.save(&secret).unwrap();
    let document = linking(&format!("file://{}", secret.display()));
    let drawn = drawn("x.docx", &document, IsolationRule::Off);
    assert_eq!(drawn.pictures.len(), 1);
    let page = pixels(&drawn, 0);
    assert!(
        page.pixels().any(|pixel| pixel.0 == [0, 0, 0]),
        "the words are there"
    );
    let is_red = |pixel: &image::Rgb<u8>| pixel.0[0] > 200 && pixel.0[1] < 60 && pixel.0[2] < 60;
    assert!(!page.pixels().any(is_red));
}
