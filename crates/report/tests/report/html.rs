use formats::chat::{Block, Content};
use formats::diff::{ChangeKind, PictureFacts};
use report::Trial;
use report::html::{PageLimits, run_page, trial_page, trial_page_with};

use crate::folder::{Documents, summary};

#[test]
fn a_page_shows_everything_and_needs_nothing() {
    let documents = Documents::read();
    let page = trial_page(&documents.trial()).unwrap();
    for shown in [
        "<title>animals, attempt 1</title>",
        "The gorilla is at `&#x2f;animals&#x2f;h4v2p&#x2f;b8x1.png`.",
        "The inventory counts every animal once",
        "could not be judged",
        r#"<div class="add">+gorilla,1</div>"#,
        r#"<div class="del">-gorilla,0</div>"#,
        "<b>Step 4</b>",
        "every picture has to be viewed",
        r#"<img src="data:image&#x2f;png;base64,iVBOR"#,
        "3 steps are left.",
        "429 Too Many Requests",
        "5,210 + 231",
        "$0.0073",
        "runs&#x2f;r&#x2f;trials&#x2f;animals&#x2f;1",
    ] {
        assert!(page.contains(shown), "`{shown}` is missing");
    }
    assert!(page.contains("a picture that is not embedded: https"));
    // Nothing is fetched and nothing runs.
    for absent in [
        "<script",
        "src=\"http",
        "href=",
        "url(",
        "@import",
        "\u{1b}",
        "undefined",
    ] {
        assert!(!page.contains(absent), "`{absent}` is there");
    }
    assert!(page.contains("default-src 'none'; img-src data:; style-src 'unsafe-inline'"));
}

/// A subagent has steps, calls and results of its own, also where its call ids are those of the agent.
#[test]
fn the_steps_of_a_subagent_stand_among_those_of_its_agent() {
    let plain = trial_page(&Documents::read().trial()).unwrap();
    let documents = Documents::read();
    let middle = documents.events.len() / 2;
    let page = trial_page(&documents.with_subagent(middle).trial()).unwrap();
    assert!(page.contains("reader &lt;b&gt;") && !page.contains("reader <b>"));
    for (what, times) in [("<b>Step 4</b>", 2), ("<b>Step 5</b>", 0)] {
        assert_eq!(page.matches(what).count(), times, "{what}");
    }
    assert_eq!(
        page.matches("the conversation that it started from")
            .count(),
        1
    );
    assert!(page.contains("the subagent ended completed"));
    let answered = |page: &str| page.matches("<div class=\"label\">result</div>").count();
    assert_eq!(answered(&page), 2 * answered(&plain));
    let limits = PageLimits {
        steps: 5,
        ..PageLimits::default()
    };
    let documents = Documents::read().with_subagent(middle);
    let short = trial_page_with(&documents.trial(), limits).unwrap();
    assert_eq!(short.matches("<section class=\"card step").count(), 5);
    assert!(short.contains("3 more steps are in the trajectory."));
}

#[test]
fn markup_by_models_and_tools_is_text() {
    let mut documents = Documents::read();
    let evil = "</pre><script>alert(1)</script><img src=x onerror=\"alert(2)\">";
    documents.summary.task = evil.to_owned();
    documents.summary.model = evil.to_owned();
    documents.trajectory.final_answer = Some(evil.to_owned());
    documents.diff.changes[0].path = evil.to_owned();
    documents.diff.changes[0].text_diff = Some(format!("+{evil}"));
    documents.verifiers[0].verifier_id = evil.to_owned();
    documents.grades.verifier_results[0].verifier_id = evil.to_owned();
    documents.grades.verifier_results[0].message = evil.to_owned();
    for from_events in [true, false] {
        for message in &mut documents.trajectory.messages {
            message.content = Some(Content::Blocks(vec![
                Block::text(evil),
                Block::image_url(format!("data:image/png;base64,AAAA\">{evil}")),
            ]));
            for call in &mut message.tool_calls {
                call.function.name = evil.to_owned();
                call.function.arguments = evil.to_owned();
            }
        }
        let mut trial = documents.trial();
        if !from_events {
            trial.events = &[];
        }
        let page = trial_page(&trial).unwrap();
        assert!(!page.contains("<script") && !page.contains("<img src=x"));
        assert!(page.contains("&lt;script&gt;alert(1)"));
    }
}

#[test]
fn changed_pictures_stand_side_by_side() {
    let mut documents = Documents::read();
    let picture = |data: &str| PictureFacts {
        mime: Some("image/png".to_owned()),
        width: Some(3),
        height: Some(2),
        preview: Some(format!("data:image/png;base64,{data}")),
    };
    let change = &mut documents.diff.changes[0];
    change.kind = ChangeKind::Modified;
    change.path = "filesystem/<plan>.png".to_owned();
    change.old_picture = Some(picture("BEFORE"));
    change.new_picture = Some(picture("AFTER"));
    let page = trial_page(&documents.trial()).unwrap();
    let at = |text: &str| {
        page.find(text)
            .unwrap_or_else(|| panic!("no {text} in {page}"))
    };
    let path = "filesystem&#x2f;&lt;plan&gt;.png";
    let before = at(&format!(
        r#"<img src="data:image&#x2f;png;base64,BEFORE" alt="{path}, before">"#
    ));
    let after = at(&format!(
        r#"<img src="data:image&#x2f;png;base64,AFTER" alt="{path}, after">"#
    ));
    assert!(before < after);
    // What is no embedded picture is not shown, whatever the document says.
    let change = &mut documents.diff.changes[0];
    change.new_picture.as_mut().unwrap().preview = Some("https://example.org/x.png".to_owned());
    let page = trial_page(&documents.trial()).unwrap();
    assert!(page.contains("BEFORE") && !page.contains("src=\"http"));
    assert!(page.contains("a picture that is not embedded"));
}

#[test]
fn a_trajectory_without_events_has_its_steps() {
    let documents = Documents::read();
    let mut trial = documents.trial();
    trial.events = &[];
    let page = trial_page(&trial).unwrap();
    assert!(page.contains("<b>Step 4</b>") && !page.contains("<b>Step 5</b>"));
    assert!(page.contains("wrote 25 bytes &lt;script&gt;"));
    assert!(page.contains("answered"));
}

#[test]
fn a_trial_that_never_began_is_a_page_too() {
    let all = summary();
    let page = trial_page(&Trial::new(&all.trials[2])).unwrap();
    assert!(page.contains("no score"));
    assert!(page.contains("owner: configuration"));
    assert!(page.contains("Hint: check `command`"));
    assert!(!page.contains("<h2>Steps</h2>"));
}

#[test]
fn pages_are_bounded_and_say_what_is_left_out() {
    let mut documents = Documents::read();
    let reply = documents.trajectory.messages[4].clone();
    let mut result = documents.trajectory.messages[5].clone();
    result.content = Some(Content::Blocks(vec![
        Block::text("z".repeat(100_000)),
        Block::image_url(format!("data:image/png;base64,{}", "A".repeat(50_000))),
    ]));
    documents.trajectory.messages = (0..2000)
        .flat_map(|_| [reply.clone(), result.clone()])
        .collect();
    let mut trial = documents.trial();
    trial.events = &[];
    let limits = PageLimits {
        text_bytes: 300_000,
        pictures_bytes: 200_000,
        steps: 100,
        ..PageLimits::default()
    };
    let page = trial_page_with(&trial, limits).unwrap();
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert_eq!(page.matches("<img").count(), 3);
    assert!(page.contains("a picture of 50.0 kB is left out"));
    assert!(page.contains("the texts of this page reach the limit of 300.0 kB"));
    assert!(page.contains("1900 more steps are in the trajectory."));
}

#[test]
fn the_page_of_a_run_lists_its_trials_with_links_to_their_pages() {
    let mut summary = summary();
    summary.run_id = "<b>run</b>".to_owned();
    summary.trials[0].folder = "trials/a \"b\"/1".to_owned();
    let page = run_page(&summary, "report.html").unwrap();
    for shown in [
        "&lt;b&gt;run&lt;&#x2f;b&gt;",
        // The mean of 0.5 and 0; the third trial says nothing about the model.
        ">0.25<",
        r#"href=".&#x2f;trials&#x2f;a%20%22b%22&#x2f;1&#x2f;report.html""#,
        "1 of 3 passed, 1 error",
        "servers_not_ready (configuration)",
    ] {
        assert!(page.contains(shown), "`{shown}` is missing in {page}");
    }
    for absent in ["<b>run", "<script", "http:", "https:"] {
        assert!(!page.contains(absent), "`{absent}` is there");
    }
    assert_eq!(page.matches("<tr>").count(), 1 + summary.trials.len());
}
