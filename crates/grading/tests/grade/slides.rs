//! How slides look.

use formats::grades::VerifierStatus;
use serde_json::{Value, json};
use testkit::openai::Turn;

use crate::case::{Case, stub};
use testkit::documents::package;

const RELATION: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

fn deck() -> Vec<u8> {
    let names = format!(
        "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" xmlns:p=\"http://schemas.openxmlformats.org/presentationml/2006/main\" xmlns:r=\"{RELATION}\""
    );
    let slide = |text: &str| {
        format!(
            "<p:sld {names}><p:cSld><p:spTree><p:sp><p:nvSpPr><p:cNvPr id=\"2\" name=\"Title 1\"/><p:nvPr><p:ph type=\"title\"/></p:nvPr></p:nvSpPr><p:spPr><a:xfrm><a:off x=\"360000\" y=\"720000\"/><a:ext cx=\"3600000\" cy=\"1800000\"/></a:xfrm><a:solidFill><a:schemeClr val=\"accent1\"/></a:solidFill></p:spPr><p:txBody><a:p><a:r><a:rPr sz=\"2400\" b=\"1\"><a:solidFill><a:srgbClr val=\"ff0000\"/></a:solidFill><a:latin typeface=\"Arial\"/></a:rPr><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
        )
    };
    package(&[
        (
            "ppt/presentation.xml",
            &format!(
                "<p:presentation {names}><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId1\"/><p:sldId id=\"257\" r:id=\"rId2\"/></p:sldIdLst></p:presentation>"
            ),
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            &format!(
                "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"rId1\" Type=\"{RELATION}/slide\" Target=\"slides/slide1.xml\"/><Relationship Id=\"rId2\" Type=\"{RELATION}/slide\" Target=\"slides/slide2.xml\"/></Relationships>"
            ),
        ),
        ("ppt/slides/slide1.xml", &slide("Sales &amp; more")),
        ("ppt/slides/slide2.xml", &slide("Costs")),
    ])
}

#[tokio::test]
async fn style_criteria_are_judged_by_what_slides_look_like() {
    let mut case = Case::new("");
    case.worlds(&[], &[("deck.pptx", &deck())]);
    let criterion = |name: &str, mode: &str, scope: &str| {
        json!({
            "criteria_name": name, "criteria_prompt": format!("{name} are good"), "judge_mode": mode,
            "criteria_scope": scope, "criteria_tag": "style",
        })
    };
    case.verifier(
        "pptx_style_verifier",
        json!({"pptx_style_criteria": [
            criterion("fonts", "text", "deck"), criterion("sizes", "text", "deck"),
            criterion("titles", "text", "slide"), criterion("pictures", "image", "slide"),
        ]}),
    );
    let says = |scores: Value| Turn::says(scores.to_string());
    let judge = stub([
        says(json!({
            "fonts": {"rationale": "r", "score": 1}, "sizes": {"rationale": "r", "score": 0},
        }))
        .when("Sales & more"),
        says(json!({"titles": {"rationale": "r", "score": 1}})),
        says(json!({"titles": {"rationale": "r", "score": "nan"}})),
    ])
    .await;
    let grades = case.grade_with(&judge).await;
    let result = &grades.verifier_results[0];
    // The deck has 1 of 2; the one slide that could be judged 1 of 1.
    assert!((result.score - 0.75).abs() < 1e-12, "{result:?}");
    let values = &result.verifier_result_values;
    assert_eq!(
        (&values["deck_score"], &values["slide_average"]),
        (&json!(0.5), &json!(1.0))
    );
    assert_eq!(
        (&values["criteria_count"], &values["slide_count"]),
        (&json!(4), &json!(2))
    );
    let bodies: Vec<String> = judge
        .requests()
        .iter()
        .map(|request| {
            request.body["messages"][1]["content"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let whole = bodies.iter().find(|text| text.contains("fonts")).unwrap();
    for part in [
        r#""box_cm":[1.0,2.0,10.0,5.0]"#,
        r#""size_pt":24.0"#,
        r##""colour":"#FF0000""##,
        r#""font":"Arial""#,
        r#""fill":"accent1""#,
        r#""placeholder":"title""#,
        "Costs",
    ] {
        assert!(whole.contains(part), "{part} in {whole}");
    }

    case.worlds(&[], &[]);
    let result = case.result().await;
    assert_eq!((result.status, result.score), (VerifierStatus::Ok, 0.0));
    assert_eq!(result.verifier_result_values["criteria_count"], 4);
}
