use formats::chat::Message;
use formats::event::{Event, EventKind, ToolOutcome};
use formats::owner::{Failure, Owner};
use report::Trial;
use report::text::{Steps, Style, run, trial};

use crate::folder::{Documents, summary};

#[test]
fn a_trial_is_told_from_its_answer_to_its_files() {
    let expected = "\
animals, attempt 1, scripted/animals

Answer  (agent completed)
  The gorilla is at `/animals/h4v2p/b8x1.png`.

World  1 created, 1 modified, 1 deleted, 3 unchanged
  ~ filesystem/inventory.csv  48 B → 51 B
      @@ -1,3 +1,3 @@
       animal,count
      -gorilla,0
      +gorilla,1
       cat,<2>
  + filesystem/notes/found.txt  25 B
      @@ -0,0 +1 @@
      +/animals/h4v2p/b8x1.png
  - filesystem/old.bin  20.5 kB  (binary)

Verifiers  1 of 3 passed, 1 could not be judged
  PASS        1  ver_001  The answer names the path of the gorilla's picture
                 The answer is `/animals/h4v2p/b8x1.png`, which is the gorilla's picture.
  FAIL        0  ver_002  The inventory counts every animal once
                 The inventory still counts two cats although there is one picture of a cat, and the
                 row of the penguin is missing altogether.
  ERROR       –  ver_003  The note is polite
                 the judge's reply is not the JSON that was asked for: `maybe`

Score  0.5  (2 of 3 verifiers judged)
Used   4 steps, 5 tool calls, 5,210 + 231 tokens, $0.0073
Judge  4 calls, 2,040 + 310 tokens
Time   8.02 s (environment 0.31 s, agent 6.40 s, snapshot 80 ms, grading 1.20 s)
Files  runs/r/trials/animals/1
";
    let documents = Documents::read();
    let text = trial(&documents.trial(), Style::default());
    assert_eq!(text, expected);
    // The coloured form says the same.
    let coloured = trial(&documents.trial(), Style::coloured());
    assert!(coloured.contains("\u{1b}[32mPASS   \u{1b}[0m"));
    assert_eq!(report::plain(&coloured), expected);
}

#[test]
fn steps_are_told_one_line_each() {
    let documents = Documents::read();
    let mut steps = Steps::new(Style::default());
    let lines: Vec<String> = documents
        .events
        .iter()
        .filter_map(|event| steps.line(event))
        .collect();
    let expected = "\
agent    react_toolbelt_agent with scripted/animals
         4 tools
step 1   I look at what there is first. (1.20 s, 812 + 61 tokens)
         filesystem_server_list_files(path: \"/animals\", recursive: true)  ok, 12 ms
         warning: attempt 1 failed, next in 1.00 s: 429 Too Many Requests
step 2   calls 2 tools (2.10 s, 1,190 + 54 tokens)
         filesystem_server_read_image(path: \"/animals/none.png\")  error, 4 ms: no such file: \
`/animals/none.png`
         filesystem_server_read_image(path: \"/animals/h4v2p/b8x1.png\")  ok, 34 ms: 2 pictures
step 3   It is in h4v2p. I note the path <b>and</b> answer. (1.40 s, 1,530 + 70 tokens)
         filesystem_server_write_file(path: \"/notes/found.txt\", content: \"/animals/h4v2p…)  ok, 9 ms
         warning: the tool `write_file` answered with markup
step 4   calls 1 tool (1.10 s, 1,678 + 46 tokens)
         final_answer(answer: \"The gorilla is at `/animals/h4v2p/b8x1.…\", status: \"compl…)  ok, 0 ms
answer (completed)   The gorilla is at `/animals/h4v2p/b8x1.png`.
agent    completed after 6.06 s";
    assert_eq!(lines.join("\n"), expected);
}

fn event(kind: EventKind) -> Event {
    Event {
        v: 1,
        seq: 0,
        time: String::new(),
        elapsed: 1.0,
        step: Some(1),
        kind,
    }
}

#[test]
fn a_result_without_a_known_call_and_hostile_text_are_safe() {
    let mut steps = Steps::new(Style::default());
    let huge = format!(
        "\u{1b}]0;owned\u{7}\u{1b}[2Jline\nline {}",
        "x".repeat(2_000_000)
    );
    let line = steps.line(&event(EventKind::ToolResult {
        message: Message::tool("unknown", "read\u{1b}[31m_file\n", huge.as_str()),
        outcome: ToolOutcome::ToolError,
        duration: 2.0,
        pictures: Vec::new(),
    }));
    let line = line.unwrap();
    assert!(
        line.starts_with("         read_file(…)  error, 2.00 s: line line xxx"),
        "{line}"
    );
    assert!(line.chars().count() < 300);
    assert!(!line.contains(char::is_control), "{line:?}");
}

#[test]
fn a_subagent_is_told_behind_its_name() {
    let documents = Documents::read().with_subagent(1);
    let mut steps = Steps::new(Style::default());
    let told: Vec<String> = documents
        .events
        .iter()
        .filter_map(|event| steps.line(event))
        .collect();
    let (inside, own): (Vec<_>, Vec<_>) = told.iter().partition(|line| line.contains(" | "));
    let inside: Vec<String> = inside
        .iter()
        .map(|line| line.replacen("         reader <b> | ", "", 1))
        .collect();
    let own: Vec<String> = own.into_iter().cloned().collect();
    assert_eq!(inside, own, "it tells of the same run");
}

#[test]
fn calls_that_are_never_answered_do_not_pile_up() {
    let mut steps = Steps::new(Style::default());
    for n in 0..1000 {
        let call = formats::chat::ToolCall::new(format!("c{n}"), "t", "{\"n\": 1}");
        assert_eq!(steps.line(&event(EventKind::ToolCall { call })), None);
    }
    let mut answer = |id: &str| {
        steps.line(&event(EventKind::ToolResult {
            message: Message::tool(id, "t", "ok"),
            outcome: ToolOutcome::Ok,
            duration: 0.0,
            pictures: Vec::new(),
        }))
    };
    assert_eq!(answer("c0").unwrap().trim(), "t(…)  ok, 0 ms");
    assert_eq!(answer("c999").unwrap().trim(), "t(n: 1)  ok, 0 ms");
}

#[test]
fn a_failed_trial_says_who_has_to_act_and_how() {
    let all = summary();
    let text = trial(&Trial::new(&all.trials[2]), Style::default());
    assert_eq!(
        text,
        "\
broken, attempt 1, scripted/animals

Failed  servers_not_ready (configuration)
  the environment could not start server `bad`: cannot start `nope`: No such file or directory (os
  error 2)
Hint    check `command`, `args`, `cwd` and `env` of the server in `mcp_config.json`

Score  none  (nothing was judged)
Used   0 steps, 0 tool calls, 0 + 0 tokens, cost unknown
Time   0.20 s (environment 0.20 s, agent 0 ms, snapshot 0 ms, grading 0 ms)
"
    );
}

#[test]
fn an_agent_without_an_answer_says_so_and_its_own_failure_is_shown() {
    let mut documents = Documents::read();
    documents.trajectory.messages.truncate(2);
    documents.trajectory.final_answer = None;
    documents.trajectory.status = formats::trajectory::AgentStatus::Failed;
    documents.trajectory.error = Some(Failure::new(Owner::Model, "step_limit", "20 steps taken"));
    let text = trial(&documents.trial(), Style::default());
    assert!(text.contains("(agent failed)"), "{text}");
    assert!(
        text.contains("Failed  step_limit (model)\n  20 steps taken\n"),
        "{text}"
    );
    assert!(text.contains("Hint    raise `max_steps`"), "{text}");
}

#[test]
fn huge_and_hostile_documents_stay_bounded_and_clean() {
    let mut documents = Documents::read();
    let hostile = format!("\u{1b}[31m{}\u{202e}\n", "y\r".repeat(50_000));
    documents.trajectory.final_answer = Some(hostile.repeat(20));
    documents.summary.task = hostile.clone();
    let change = documents.diff.changes[0].clone();
    documents.diff.changes = (0..5000)
        .map(|_| {
            let mut change = change.clone();
            change.text_diff = Some(hostile.clone());
            change.path = hostile[..200].to_owned();
            change
        })
        .collect();
    let result = documents.grades.verifier_results[0].clone();
    documents.grades.verifier_results = vec![result; 3000];
    for result in &mut documents.grades.verifier_results {
        result.message = hostile[..5000].to_owned();
    }
    let text = trial(&documents.trial(), Style::default());
    assert!(text.len() < 300_000, "{}", text.len());
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!text.contains('\u{202e}'));
    assert!(text.contains("… and 4960 more"), "changes");
    assert!(text.contains("… and 2900 more"), "verifiers");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.unwrap() <= 170, "{widest:?}");
}

#[test]
fn a_run_is_a_table_with_totals() {
    assert_eq!(
        run(&summary(), Style::default()),
        "\
task                                  try  agent        score  verifiers   steps       cost        time
animals                                 1  completed      0.5     1/3 1!       4    $0.0073      8.02 s
a_task_with_a_name_that_is_much_lon…    2  failed           0        0/2       4    $0.0073      8.02 s
broken                                  1  not begun        –          –       0          –      0.20 s
  servers_not_ready (configuration): the environment could not start server `bad`: cannot start `nope`: No such file…

mean score 0.25 over 2 of 3 trials, 1 failed for other reasons, $0.0146 or more, 19.5 s
"
    );
}
