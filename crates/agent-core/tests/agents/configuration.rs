//! What is refused or accepted before a run (`spec/agents.md` §4.1, §6.4).

use std::time::Duration;

use agent_core::{AgentConfigError, Agents, RunInput, run};
use formats::Object;
use formats::agent::AgentConfig;
use formats::owner::{Failure, Owner};
use serde_json::{Value, json};

use crate::support::model::{Script, text};
use crate::support::{Events, assert_completed};

fn config(id: &str, values: Value) -> AgentConfig {
    AgentConfig {
        agent_config_id: id.into(),
        agent_name: "x".into(),
        agent_config_values: match values {
            Value::Object(values) => values,
            _ => Object::new(),
        },
    }
}

#[test]
fn an_unknown_agent_is_refused_with_the_known_ones() {
    let error = Agents::builtin()
        .resolve(&config("toolbelt_agent", json!({})))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown agent `toolbelt_agent`; known are `loop_agent`, `react_toolbelt_agent`, `single_shot`"
    );
    assert_eq!(Failure::from(&error).owner, Owner::Configuration);
}

#[test]
fn settings_are_read_with_their_defaults_and_nonsense_is_refused() {
    let agents = Agents::builtin();
    let resolve = |id: &str, values: Value| agents.resolve(&config(id, values));
    for id in ["loop_agent", "react_toolbelt_agent"] {
        let agent = resolve(id, json!({"timeout": null, "unknown": [1]})).unwrap();
        assert_eq!(agent.timeout(), Duration::from_secs(10_800));
        let agent = resolve(id, json!({"timeout": "600"})).unwrap();
        assert_eq!(agent.timeout(), Duration::from_secs(600));
        let agent = resolve(id, json!({"timeout": 5})).unwrap();
        assert_eq!(agent.warnings().len(), 1);
        let error = resolve(id, json!({"timeout": "soon"})).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(r#"agent `{id}`: setting `timeout` must be a number, got "soon""#)
        );
        assert!(resolve(id, json!({"max_steps": -1})).is_err());
    }
}

#[test]
fn the_schemas_tell_defaults_and_bounds() {
    let agents = Agents::builtin();
    let schema = agents.schema("loop_agent").unwrap();
    let properties = &schema.as_value()["properties"];
    for (name, default, least, most) in [
        ("timeout", 10800.0, 300.0, 28800.0),
        ("max_steps", 100.0, 1.0, 1000.0),
        ("tool_call_timeout", 60.0, 10.0, 600.0),
        ("llm_response_timeout", 600.0, 30.0, 1200.0),
    ] {
        let field = &properties[name];
        assert_eq!(field["default"].as_f64(), Some(default), "{name}: {field}");
        assert_eq!(field["minimum"].as_f64(), Some(least), "{name}");
        assert_eq!(field["maximum"].as_f64(), Some(most), "{name}");
        assert!(field["description"].is_string(), "{name}");
    }
    let schema = agents.schema("react_toolbelt_agent").unwrap();
    let properties = &schema.as_value()["properties"];
    assert_eq!(properties["max_steps"]["default"], 250);
    assert_eq!(properties["llm_response_timeout"]["maximum"], 10800.0);
}

#[tokio::test]
async fn messages_without_a_role_and_bad_addresses_are_refused_before_the_run() {
    let script = Script::new([]);
    let mut input = RunInput::new(script.model());
    input.initial_messages = vec![
        json!({"role": "user", "content": "x"}),
        json!({"content": "y"}),
    ];
    let error = run(&Agents::builtin(), input).await.unwrap_err();
    assert!(
        matches!(error, AgentConfigError::InitialMessage { index: 1, .. }),
        "{error}"
    );

    for (url, token) in [
        ("localhost:8080/mcp", None),
        ("http://x/mcp", Some("two\nlines")),
    ] {
        let mut endpoint = agent_core::McpEndpoint::new(url);
        endpoint.auth_token = token.map(str::to_owned);
        let input = RunInput::new(script.model())
            .user("go")
            .tools(agent_core::ToolSources::new().with_endpoint(endpoint));
        let error = run(&Agents::builtin(), input).await.unwrap_err();
        assert!(
            matches!(error, AgentConfigError::Endpoint { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn unknown_keys_and_blocks_of_messages_survive() {
    let script = Script::new([text("done")]);
    let messages = vec![
        json!({"role": "system", "content": [{"type": "text", "text": "be good",
            "cache_control": {"type": "ephemeral"}}]}),
        json!({"role": "user", "name": "kim", "x": {"y": 1},
            "content": [{"type": "hologram", "data": [1, 2]}, {"type": "text", "text": "go"}]}),
    ];
    let mut input = RunInput::new(script.model()).agent("loop_agent", json!({}));
    input.initial_messages = messages.clone();
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    let written = serde_json::to_value(&trajectory.messages[..2]).unwrap();
    assert_eq!(written, Value::Array(messages));
}

#[tokio::test]
async fn odd_settings_are_told_as_warnings() {
    let script = Script::new([text("done")]);
    let events = Events::default();
    let input = RunInput::new(script.model())
        .agent(
            "loop_agent",
            json!({"max_steps": 5000, "token_budget": "lots"}),
        )
        .user("go")
        .observer(std::sync::Arc::new(events.clone()));
    assert_completed(&run(&Agents::builtin(), input).await.unwrap());
    let warnings = events.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

struct Clumsy;

#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct ClumsyConfig {
    words: Option<String>,
}

impl agent_core::Agent for Clumsy {
    type Config = ClumsyConfig;

    fn id(&self) -> &'static str {
        "clumsy"
    }

    fn timeout(&self, _: &ClumsyConfig) -> Duration {
        Duration::from_secs(60)
    }

    async fn drive(
        &self,
        config: &ClumsyConfig,
        run: &mut agent_core::Run,
    ) -> Result<agent_core::Answer, Failure> {
        run.begin_step();
        run.say(formats::chat::Message::user("on the way"));
        panic!("fell over {}", config.words.as_deref().unwrap_or("nothing"));
    }
}

/// Answers with what the caller said about the run.
struct Curious;

#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct NoSettings {}

impl agent_core::Agent for Curious {
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "curious"
    }

    fn timeout(&self, _: &NoSettings) -> Duration {
        Duration::from_secs(60)
    }

    async fn drive(
        &self,
        _: &NoSettings,
        run: &mut agent_core::Run,
    ) -> Result<agent_core::Answer, Failure> {
        let context = run.context();
        let said = json!([
            context.trajectory_id,
            context.extra_args,
            context.parent_trajectory_output,
            context.custom_args,
            context.task_custom_fields,
            context.inner_agent_config,
        ]);
        Ok(agent_core::Answer::new(said.to_string()))
    }
}

#[tokio::test]
async fn an_agent_sees_what_the_caller_says_about_the_run() {
    let mut agents = Agents::builtin();
    agents.register(Curious);
    let object = |key: &str| Some(formats::Object::from_iter([(key.to_owned(), json!(1))]));
    let mut input = RunInput::new(Script::new([]).model()).agent("curious", json!({}));
    input.trajectory_id = "t7".into();
    input.extra_args = object("a").unwrap();
    input.parent_trajectory_output = object("b");
    input.custom_args = object("c");
    input.task_custom_fields = object("d");
    input.inner_agent_config = object("e");
    let trajectory = run(&agents, input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(
        trajectory.final_answer.unwrap(),
        json!(["t7", {"a": 1}, {"b": 1}, {"c": 1}, {"d": 1}, {"e": 1}]).to_string()
    );
}

#[tokio::test]
async fn ranges_are_enforced_on_request() {
    let config = formats::agent::AgentConfig {
        agent_config_id: "loop_agent".into(),
        agent_name: String::new(),
        agent_config_values: formats::Object::from_iter([("max_steps".to_owned(), json!(5000))]),
    };
    assert_eq!(
        Agents::builtin().resolve(&config).unwrap().warnings().len(),
        1
    );
    let refused = Agents::builtin().enforce_ranges().resolve(&config);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "agent `loop_agent`: setting `max_steps` should be at most 1000, got 5000"
    );
}

#[tokio::test]
async fn an_agent_of_ones_own_runs_and_a_panic_keeps_the_history() {
    let mut agents = Agents::builtin();
    agents.register(Clumsy);
    assert_eq!(agents.ids().last(), Some("clumsy"));
    let script = Script::new([]);
    let input = RunInput::new(script.model())
        .agent("clumsy", json!({"words": "a wire"}))
        .user("go");
    let trajectory = run(&agents, input).await.unwrap();
    assert_eq!(crate::support::end(&trajectory).2, "agent_panicked");
    assert!(
        trajectory
            .error
            .as_ref()
            .unwrap()
            .message
            .ends_with("fell over a wire")
    );
    assert_eq!(
        crate::support::lines(&trajectory),
        ["user: go", "user: on the way"]
    );
}
