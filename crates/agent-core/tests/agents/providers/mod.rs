//! The scenarios of `spec/agents.md` §21 and the pitfalls A6 to A9 against the checking stub of every
//! provider: over the real wire, with a server that refuses what the real one refuses.
//!
//! A provider is one line at the end; a scenario is one function and one word in `scenarios!`.

mod pitfalls;
mod scenarios;

use std::sync::Arc;
use std::time::Duration;

use agent_core::{Agents, RunInput, ToolSources, run};
use formats::Object;
use formats::trajectory::Trajectory;
use llm_client::{Model, Models, RetryPolicy};
use serde_json::{Value, json};
use testkit::stub::{Interface, Script, Stub, Turn};

use crate::support::server::Server;
use crate::support::{Events, assert_every_call_answered};

/// A provider under test.
#[derive(Clone, Copy)]
struct Provider {
    /// `provider/model`.
    model: &'static str,
    /// Whether arguments are text on the wire, so that they can be no JSON.
    raw_arguments: bool,
}

/// A scripted model of a provider, a tool server, and who watches.
struct Bench<I> {
    provider: Provider,
    stub: Stub<I>,
    server: Server,
    events: Events,
}

impl<I: Interface> Bench<I> {
    async fn new(provider: Provider, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with_server(provider, turns, Server::start().await).await
    }

    async fn with_server(
        provider: Provider,
        turns: impl IntoIterator<Item = Turn>,
        server: Server,
    ) -> Self {
        Self {
            stub: Stub::start(Script::new(turns)).await.unwrap(),
            server,
            events: Events::default(),
            provider,
        }
    }

    fn model(&self) -> Model {
        self.model_with(self.stub.variables())
    }

    fn model_with(
        &self,
        variables: impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static,
    ) -> Model {
        // Bedrock's addresses and signatures have a region, Vertex AI's addresses a project; nobody
        // else asks for them.
        let place = |name: &str| match name {
            "AWS_REGION" => Some("us-east-1".to_owned()),
            "VERTEXAI_PROJECT" => Some("stub-project".to_owned()),
            _ => None,
        };
        Models::new(move |name| variables(name).or_else(|| place(name)))
            .resolve(self.provider.model, &Object::new())
            .unwrap()
            .with_retry(RetryPolicy {
                attempts: 2,
                first_wait: Duration::from_millis(1),
                ..RetryPolicy::default()
            })
    }

    fn input(&self, agent: &str, settings: Value) -> RunInput {
        RunInput::new(self.model())
            .agent(agent, settings)
            .user("go")
            .observer(Arc::new(self.events.clone()))
            .tools(ToolSources::gateway(&self.server.url))
    }

    /// Runs the agent; no request may be refused, every turn has to be used, every call has an answer.
    async fn run(&self, agent: &str, settings: Value) -> Trajectory {
        self.finish(self.input(agent, settings)).await
    }

    async fn finish(&self, input: RunInput) -> Trajectory {
        let trajectory = self.go(input).await;
        assert_eq!(
            self.stub.turns_left(),
            0,
            "{:#?}",
            crate::support::lines(&trajectory)
        );
        trajectory
    }

    /// Like `run`, for runs that end before the script does.
    async fn go(&self, input: RunInput) -> Trajectory {
        let trajectory = run(&Agents::builtin(), input).await.unwrap();
        assert_eq!(self.stub.refusals(), [""; 0]);
        assert_every_call_answered(&trajectory.messages);
        trajectory
    }

    /// The body of a request, counted from 0, as text.
    fn asked(&self, request: usize) -> String {
        self.stub.requests()[request].body.to_string()
    }

    /// Whether the request holds these words, in this order.
    #[track_caller]
    fn assert_asked(&self, request: usize, words: &[&str]) {
        let body = self.asked(request);
        let mut rest = body.as_str();
        for word in words {
            let quoted = json!(word).to_string();
            let quoted = &quoted[1..quoted.len() - 1];
            match rest.find(quoted) {
                Some(at) => rest = &rest[at + quoted.len()..],
                None => panic!("no {word:?} (in this order) in request {request}: {body}"),
            }
        }
    }
}

/// A turn that calls tools, each with its arguments.
fn calls(calls: &[(&str, Value)]) -> Turn {
    calls
        .iter()
        .fold(Turn::default(), |turn, (name, arguments)| {
            turn.and_calls(*name, arguments.clone())
        })
}

/// The final answer of the toolbelt agent.
fn answer(text: &str) -> (&str, Value) {
    (
        "final_answer",
        json!({"answer": text, "status": "completed"}),
    )
}

/// Puts a tool into the belt.
fn add(tool: &str) -> (&'static str, Value) {
    ("toolbelt_add_tool", json!({"tool_name": tool}))
}

macro_rules! scenarios {
    (@ $interface:ty, $provider:expr, $module:ident: $($scenario:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                crate::providers::$module::$scenario::<$interface>($provider).await;
            }
        )*
    };
    ($interface:ty, $provider:expr) => {
        scenarios!(@ $interface, $provider, scenarios:
            s1_a_text_completes s2_a_call_that_times_out_beside_another s3_pictures
            s4_empty_replies s5_token_budget s6_steps_time_and_cancellation s7_a_server_that_is_gone
            s8_the_belt s9_an_open_todo s10_no_call_is_nudged s11_long_results
            s12_a_full_context_is_summarised s13_wrong_key_and_overflow s14_tools_of_all_pages);
        scenarios!(@ $interface, $provider, pitfalls:
            a6_equal_and_empty_ids a6_calls_beside_a_refused_answer a7_broken_arguments
            a8_blank_texts_and_empty_turns a9_every_kind_of_part);
    };
}

macro_rules! provider {
    ($name:ident, $interface:ty, $model:literal, raw_arguments: $raw:literal) => {
        mod $name {
            scenarios!(
                $interface,
                crate::providers::Provider {
                    model: $model,
                    raw_arguments: $raw
                }
            );
        }
    };
}

provider!(openai, testkit::openai::OpenAi, "openai/stub", raw_arguments: true);
provider!(anthropic, testkit::anthropic::Anthropic, "anthropic/claude-stub", raw_arguments: true);
provider!(openai_responses, testkit::openai::OpenAi, "openai/responses/stub", raw_arguments: true);
provider!(azure, testkit::azure::Azure, "azure/stub", raw_arguments: true);
provider!(gemini, testkit::gemini::Gemini, "gemini/gemini-stub", raw_arguments: false);
provider!(bedrock, testkit::bedrock::Bedrock, "bedrock/anthropic.claude-stub", raw_arguments: false);
provider!(vertex_gemini, testkit::vertex::Vertex, "vertex_ai/gemini-stub", raw_arguments: false);
provider!(vertex_claude, testkit::vertex::Vertex, "vertex_ai/claude-stub", raw_arguments: true);
