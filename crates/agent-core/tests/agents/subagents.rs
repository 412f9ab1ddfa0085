//! Agents inside agents (`spec/agents.md` §19).

use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    Agent, AgentTool, Agents, Answer, Run, RunInput, Subagent, ToolSources, rebuild, run,
};
use formats::Object;
use formats::chat::Message;
use formats::event::EventKind;
use formats::owner::Failure;
use formats::trajectory::AgentStatus;
use serde_json::json;

use crate::support::model::{Script, calls, text};
use crate::support::server::Server;
use crate::support::{Events, assert_completed, lines, user};

/// Gives its task to a loop agent and says what that one said.
struct Delegate;

#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct DelegateConfig {
    to: Option<String>,
}

impl Agent for Delegate {
    type Config = DelegateConfig;

    fn id(&self) -> &'static str {
        "delegate"
    }

    fn timeout(&self, _: &DelegateConfig) -> Duration {
        Duration::from_secs(60)
    }

    async fn drive(&self, config: &DelegateConfig, run: &mut Run) -> Result<Answer, Failure> {
        run.begin_step();
        let subagent = Subagent {
            name: "reader".into(),
            agent: config.to.clone().unwrap_or_else(|| "loop_agent".into()),
            system: "Read.".into(),
            messages: vec![Message::user("read it")],
            settings: Object::new(),
        };
        let inner = run
            .run_subagent(subagent)
            .await
            .map_err(|error| Failure::from(&error))?;
        Ok(Answer::new(inner.final_answer.unwrap_or_default()))
    }
}

fn agents() -> Agents {
    let mut agents = Agents::builtin();
    agents.register(Delegate);
    agents
}

#[tokio::test]
async fn a_subagent_has_the_tools_and_a_conversation_of_its_own() {
    let server = Server::start().await;
    let events = Events::default();
    let script = Script::new([calls(&[("counter", json!({}))]), text("it says 1")]);
    let input = RunInput::new(script.model())
        .agent("delegate", json!({}))
        .user("go")
        .observer(Arc::new(events.clone()))
        .tools(ToolSources::gateway(&server.url));
    let trajectory = run(&agents(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(trajectory.final_answer.as_deref(), Some("it says 1"));
    assert_eq!(lines(&trajectory), ["user: go"]);
    assert_eq!(
        script.asked()[1].lines(),
        [
            "system: Read.",
            "user: read it",
            "assistant:  [counter({})]",
            "tool: 1"
        ]
    );
    assert_eq!(server.calls().len(), 1);
    let inner: Vec<_> = events
        .all()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Subagent { name, event } => Some((name, *event)),
            _ => None,
        })
        .collect();
    assert!(inner.iter().all(|(name, _)| name == "reader"));
    let inner: Vec<_> = inner.into_iter().map(|(_, event)| event).collect();
    // The events inside are those of a whole run.
    let rebuilt = rebuild(&inner).unwrap();
    assert_eq!(rebuilt.status, AgentStatus::Completed);
    assert_eq!(rebuilt.messages.len(), 5);
    let usage = trajectory.usage.clone().unwrap();
    assert_eq!(usage["total_tokens"], 0);
    assert_eq!(usage["subagents"][0]["name"], "reader");
    assert_eq!(usage["subagents"][0]["usage"]["total_tokens"], 30);
    // They are no part of the conversation outside.
    assert_eq!(
        rebuild(&events.all()).unwrap().messages,
        trajectory.messages
    );
}

#[tokio::test]
async fn a_subagent_that_does_not_exist_and_a_cancelled_one_end_the_run() {
    let script = Script::new([crate::support::model::Say::Hang]);
    let input = RunInput::new(script.model())
        .agent("delegate", json!({"to": "nobody"}))
        .user("go");
    let trajectory = run(&agents(), input).await.unwrap();
    let (_, owner, _) = crate::support::end(&trajectory);
    assert_eq!(owner, "configuration");

    let input = RunInput::new(script.model())
        .agent("delegate", json!({}))
        .user("go");
    let cancel = input.cancel.clone();
    let asked = script.clone();
    tokio::spawn(async move {
        crate::support::eventually("the subagent asks", || asked.asked().len() == 1).await;
        cancel.cancel();
    });
    let trajectory = run(&agents(), input).await.unwrap();
    assert_eq!(trajectory.status, AgentStatus::Cancelled);
}

#[tokio::test]
async fn an_agent_is_a_tool_of_another() {
    let inner = Script::new([text("the gorilla is at /animals"), text(" ")]);
    let model = inner.model();
    let reader = AgentTool::new("reader", "Reads files.", Agents::builtin(), move || {
        let mut input = RunInput::new(model.clone()).agent("single_shot", json!({}));
        input.initial_messages = vec![json!({"role": "system", "content": "You read."})];
        input
    });
    let script = Script::new([
        calls(&[
            ("reader", json!({"task": "Where is the gorilla?"})),
            ("reader", json!({"task": "And the lion?"})),
            ("reader", json!({})),
        ]),
        text("done"),
    ]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::new().with_tool(reader));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(
        lines(&trajectory)[2..5],
        [
            "tool: the gorilla is at /animals",
            "tool: the agent ended failed: the last reply had neither text nor tool calls",
            "tool: `task` must be a text that says what to do"
        ]
    );
    let asked = inner.asked();
    assert_eq!(
        json!(asked[0].messages),
        json!([{"role": "system", "content": "You read."}, user("Where is the gorilla?")])
    );
}
