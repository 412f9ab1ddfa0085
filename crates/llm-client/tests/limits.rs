//! Rate limits, budgets and kept answers around real calls.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod calls;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use calls::{object, request};
use formats::Object;
use formats::chat::{Message, Usage};
use formats::owner::Owner;
use futures::FutureExt;
use futures::future::BoxFuture;
use llm_client::{
    Budget, BudgetLimits, Cache, CacheLimits, ChatError, ChatErrorKind, ChatRequest, ChatResponse,
    Hooks, Model, Models, Price, RateLimit, RateLimits, Recording, RetryPolicy, Tape, WaitReason,
};
use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};
use tokio::time::Instant;

async fn ask_with(
    model: &Model,
    text: &str,
    extra_args: &Value,
) -> Result<ChatResponse, ChatError> {
    let (messages, extra_args) = ([Message::user(text)], object(extra_args));
    model.chat(request(&messages, &extra_args), &|_| {}).await
}

async fn ask(model: &Model, text: &str) -> Result<ChatResponse, ChatError> {
    ask_with(model, text, &json!({})).await
}

async fn stub(turns: impl IntoIterator<Item = Turn>) -> OpenAiStub {
    OpenAiStub::start(Script::new(turns).repeat_last())
        .await
        .unwrap()
}

/// Two models of one provider, as an agent and a judge have them.
fn pair(models: &Models) -> [Model; 2] {
    ["openai/gpt-4.1", "openai/gpt-4o"].map(|name| models.resolve(name, &Object::new()).unwrap())
}

/// A clone of `models`, as each trial has one.
fn of_a_trial(models: &Models) -> Models {
    models.clone().with_script_folder("elsewhere")
}

#[tokio::test]
async fn a_wait_of_the_provider_holds_for_agents_and_judges_of_all_trials() {
    let stub = stub([
        Turn::fails(429).header("retry-after-ms", "400"),
        Turn::says("fine"),
    ])
    .await;
    let models = Models::new(stub.variables());
    let [agent, _] = pair(&models);
    let [_, judge] = pair(&of_a_trial(&models));
    let started = Instant::now();
    let refused = Arc::new(tokio::sync::Notify::new());
    let waits = Mutex::new(Vec::new());
    let first = async {
        let messages = [Message::user("a")];
        let (retry, extra_args) = (
            |_: llm_client::RetryNotice<'_>| refused.notify_one(),
            Object::new(),
        );
        agent
            .chat(request(&messages, &extra_args), &retry)
            .await
            .unwrap()
    };
    let second = async {
        refused.notified().await;
        let messages = [Message::user("b")];
        let extra_args = Object::new();
        let on_wait = |notice: llm_client::WaitNotice| waits.lock().unwrap().push(notice);
        let hooks = Hooks {
            on_wait: Some(&on_wait),
            ..Hooks::default()
        };
        judge
            .chat_with(request(&messages, &extra_args), hooks)
            .await
            .unwrap()
    };
    let (_, judged) = tokio::join!(first, second);
    // It was asked after the refusal, and went out only when the wait was over.
    assert!(
        started.elapsed() >= Duration::from_millis(390),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(judged.attempts, 1);
    let waits = waits.into_inner().unwrap();
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0].reason, WaitReason::Provider);
}

/// Answers after two seconds and remembers how many were asked at once, and when each began.
#[derive(Default)]
struct Slow {
    now: Mutex<(usize, usize)>,
    begun: Mutex<Vec<u64>>,
    start: Mutex<Option<Instant>>,
}

impl llm_client::Provider for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn send<'a>(
        &'a self,
        _: ChatRequest<'a>,
    ) -> BoxFuture<'a, Result<llm_client::Reply, ChatError>> {
        async move {
            let start = *self.start.lock().unwrap().get_or_insert_with(Instant::now);
            self.begun.lock().unwrap().push(start.elapsed().as_secs());
            {
                let mut now = self.now.lock().unwrap();
                now.0 += 1;
                now.1 = now.1.max(now.0);
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            self.now.lock().unwrap().0 -= 1;
            let usage: Usage =
                serde_json::from_value(json!({"prompt_tokens": 60, "completion_tokens": 40}))
                    .unwrap();
            let reply = llm_client::Reply::new("m", Message::assistant("done"));
            Ok(llm_client::Reply {
                usage: Some(usage),
                ..reply
            })
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_budget_is_told_and_is_no_time_out() {
    let provider = Arc::new(Slow::default());
    // 100 tokens are used by each call, and 1,000 are set aside: one at a time.
    let budget = Budget::new(
        "run",
        BudgetLimits {
            tokens: Some(1_300),
            ..BudgetLimits::default()
        },
    );
    let model = Model::new("slow/m", Arc::<Slow>::clone(&provider))
        .with_retry(RetryPolicy {
            total: Duration::from_secs(3),
            ..RetryPolicy::never()
        })
        .with_budget(budget.clone());
    let extra_args = object(&json!({"max_tokens": 1000 - 10, "timeout": 3}));
    let messages = [Message::user("12345678")];
    let waits = Mutex::new(Vec::new());
    let on_wait = |notice: llm_client::WaitNotice| waits.lock().unwrap().push(notice);
    let call = || {
        let hooks = Hooks {
            on_wait: Some(&on_wait),
            ..Hooks::default()
        };
        model.chat_with(request(&messages, &extra_args), hooks)
    };
    let answers = futures::future::join_all([call(), call(), call(), call()]).await;
    assert_eq!(*provider.begun.lock().unwrap(), [0, 2, 4, 6]);
    assert_eq!(provider.now.lock().unwrap().1, 1);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let waits = waits.lock().unwrap().clone();
    assert_eq!(waits.len(), 3);
    assert!(waits.iter().all(|wait| wait.reason == WaitReason::Budget));
    assert_eq!(budget.spent().tokens, 400);
    // 400 + 998 are more than there is, whatever else happens.
    let error = call().await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Budget);
    assert_eq!(error.kind.owner(), Owner::Configuration);
    assert!(!error.is_retryable());
    assert!(
        error.message.contains("budget of the run") && error.message.contains("1300"),
        "{error}"
    );
    assert_eq!(provider.begun.lock().unwrap().len(), 4, "it was not sent");
}

#[tokio::test]
async fn limits_are_shared_by_all_that_ask_a_provider() {
    let stub = stub([Turn::says("x").after_ms(150)]).await;
    let mut limits = RateLimits::default();
    limits.set(
        "openai",
        RateLimit {
            concurrency: 1.try_into().ok(),
            ..RateLimit::default()
        },
    );
    let models = Models::new(stub.variables()).with_rate_limits(limits);
    let [agent, judge] = pair(&models);
    let [other, _] = pair(&of_a_trial(&models));
    let started = Instant::now();
    let all = [ask(&agent, "a"), ask(&judge, "b"), ask(&other, "c")];
    for answer in futures::future::join_all(all).await {
        answer.unwrap();
    }
    assert!(
        started.elapsed() >= Duration::from_millis(440),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn money_is_set_aside_for_the_longest_reply() {
    let stub = stub([Turn::says("x").usage(1000, 100)]).await;
    let budget = |usd| {
        Budget::new(
            "run",
            BudgetLimits {
                cost_usd: Some(usd),
                ..BudgetLimits::default()
            },
        )
    };
    // At 2 and 8 dollars a million, 1,000 and 100 tokens cost 0.0028, and a reply of 1,000 tokens 0.008.
    let run = budget(0.02);
    let models = Models::new(stub.variables()).with_budget(run.clone());
    let model = models.resolve("openai/gpt-4.1", &Object::new()).unwrap();
    let limited = json!({"max_completion_tokens": 1000});
    // The longest reply of the model itself would cost 0.26.
    let error = ask(&model, "hi").await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Budget);
    assert_eq!(stub.requests().len(), 0);
    for _ in 0..4 {
        ask_with(&model, "hi", &limited).await.unwrap();
    }
    // 0.0112 are spent; 0.0112 + 0.008 fit in, and then 0.014 + 0.008 do not.
    ask_with(&model, "hi", &limited).await.unwrap();
    let error = ask_with(&model, "hi", &limited).await.unwrap_err();
    assert!(
        error.message.contains("0.014000 US dollars are spent"),
        "{error}"
    );
    assert_eq!(stub.requests().len(), 5);
    assert_eq!(run.spent().refused, 2);

    // A trial has less than the run; what it spends counts for both.
    let (run, trial) = (budget(1.0), budget(0.02));
    let models = Models::new(stub.variables())
        .with_budget(run.clone())
        .with_budget(trial.clone());
    let model = models.resolve("openai/gpt-4.1", &Object::new()).unwrap();
    ask_with(&model, "hi", &limited).await.unwrap();
    assert_eq!(run.spent().cost_usd, trial.spent().cost_usd);
    assert!((run.spent().cost_usd - 0.0028).abs() < 1e-9);
    assert!(ask(&model, "hi").await.is_err());
    assert_eq!((run.spent().refused, trial.spent().refused), (0, 1));
}

#[tokio::test]
async fn files_and_variables_set_limits_and_prices() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let prices = write(
        "prices.json",
        r#"{"openai/mine": {"input": 1, "output": 100}}"#,
    );
    let limits = write("limits.json", r#"{"openai": {"requests_per_minute": 100}}"#);
    let stub = stub([Turn::says("x").usage(1_000_000, 10_000)]).await;
    let of_stub = stub.variables();
    let models = Models::from_variables(|name| match name {
        "ARCHIPELAGO_PRICES" => Some(prices.clone()),
        "ARCHIPELAGO_RATE_LIMITS" => Some(limits.clone()),
        "OPENAI_CONCURRENCY" => Some("4".to_owned()),
        name => of_stub(name),
    })
    .unwrap();
    let model = models.resolve("openai/mine", &Object::new()).unwrap();
    assert_eq!(model.price(), Some(Price::new(1.0, 100.0)));
    assert_eq!(ask(&model, "x").await.unwrap().cost_usd, Some(2.0));

    let refused = |variable: &'static str, value: &str| {
        let value = value.to_owned();
        let error = Models::from_variables(move |name| (name == variable).then(|| value.clone()));
        let error = error.unwrap_err();
        assert_eq!(error.owner(), Owner::Configuration);
        error.to_string()
    };
    let bad = write("bad.json", "{\"openai\": {\n\"rpm\": 5}}");
    let text = refused("ARCHIPELAGO_RATE_LIMITS", &bad);
    assert!(
        text.contains("bad.json") && text.contains("line 2") && text.contains("rpm"),
        "{text}"
    );
    let text = refused("ARCHIPELAGO_PRICES", "/nowhere/prices.json");
    assert!(
        text.contains("cannot read prices `/nowhere/prices.json`"),
        "{text}"
    );
    let text = refused("XAI_TOKENS_PER_MINUTE", "lots");
    assert_eq!(
        text,
        "`XAI_TOKENS_PER_MINUTE` must be a whole number above 0, got `lots`"
    );
}

fn cached(stub: &OpenAiStub, folder: &Path, limits: CacheLimits) -> Models {
    Models::new(stub.variables())
        .with_retry(RetryPolicy::never())
        .with_cache(Cache::open(folder, limits).unwrap())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let files = |path: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    files(folder)
        .iter()
        .flat_map(|group| files(group))
        .collect()
}

#[tokio::test]
async fn the_same_request_is_paid_once_and_any_other_again() {
    let turns = (0..9).map(|number| Turn::says(format!("answer {number}")).usage(1000, 100));
    let stub = OpenAiStub::start(Script::new(turns)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tape_folder = tempfile::tempdir().unwrap();
    let models = cached(&stub, folder.path(), CacheLimits::default());
    let [one, other] = pair(&models);
    let first = ask(&one, "q").await.unwrap();
    assert_eq!((first.attempts, first.cost_usd), (1, Some(0.0028)));
    // Also another program finds it, in a recording too.
    let models = cached(&stub, folder.path(), CacheLimits::default())
        .with_tape(Tape::create(tape_folder.path()).unwrap());
    let [again, _] = pair(&models);
    let kept = ask_with(&again, "q", &json!({"timeout": 7})).await.unwrap();
    assert_eq!((kept.attempts, kept.cost_usd), (0, Some(0.0)));
    assert_eq!((&kept.message, &kept.usage), (&first.message, &first.usage));
    assert_eq!(
        (&kept.raw, &kept.finish_reason),
        (&first.raw, &first.finish_reason)
    );
    assert_eq!(Recording::open(tape_folder.path()).unwrap().len(), 1);
    assert_eq!(stub.requests().len(), 1);
    let mut texts = vec![ask(&other, "q").await.unwrap().message.text().into_owned()];
    for (text, extra_args) in [
        ("r", json!({})),
        ("q", json!({"seed": 1})),
        ("q", json!({"extra_headers": {"x-beta": "1"}})),
    ] {
        let answer = ask_with(&one, text, &extra_args).await.unwrap();
        texts.push(answer.message.text().into_owned());
    }
    assert_eq!(texts, ["answer 1", "answer 2", "answer 3", "answer 4"]);
    // The same name at another address is another model.
    let elsewhere = object(
        &json!({"api_base": format!("{}/", stub.base_url().replace("127.0.0.1", "localhost"))}),
    );
    let elsewhere = models.resolve("openai/gpt-4.1", &elsewhere).unwrap();
    assert_eq!(
        ask(&elsewhere, "q").await.unwrap().message.text(),
        "answer 5"
    );
}

#[tokio::test]
async fn what_is_no_whole_answer_is_not_kept() {
    let stub = stub([
        Turn::says("cut").finish_reason("length"),
        Turn::says("filtered").finish_reason("content_filter"),
        Turn::says("  "),
        Turn::fails(500),
        Turn::says("good"),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    let [model, _] = pair(&cached(&stub, folder.path(), CacheLimits::default()));
    for _ in 0..4 {
        // An answer of blanks may be one, or an error.
        let _ = ask(&model, "q").await;
        assert!(entries(folder.path()).is_empty());
    }
    assert_eq!(ask(&model, "q").await.unwrap().attempts, 1);
    assert_eq!(ask(&model, "q").await.unwrap().attempts, 0);
    assert_eq!(stub.requests().len(), 5);
}

#[tokio::test]
async fn a_spoiled_entry_is_asked_for_again_and_replaced() {
    let stub = stub([Turn::says("good")]).await;
    let folder = tempfile::tempdir().unwrap();
    let [model, _] = pair(&cached(&stub, folder.path(), CacheLimits::default()));
    ask(&model, "q").await.unwrap();
    let path = entries(folder.path()).remove(0);
    let whole = std::fs::read_to_string(&path).unwrap();
    let half = whole[..whole.len() / 2].to_owned();
    let other_key = whole.replacen("\"key\": \"", "\"key\": \"0", 1);
    let other_version = whole.replacen("\"version\": 1", "\"version\": 2", 1);
    for (number, spoiled) in [half, other_key, other_version, String::new()]
        .iter()
        .enumerate()
    {
        std::fs::write(&path, spoiled).unwrap();
        assert_eq!(ask(&model, "q").await.unwrap().attempts, 1, "{spoiled}");
        assert_eq!(ask(&model, "q").await.unwrap().attempts, 0);
        assert_eq!(stub.requests().len(), number + 2);
    }
}

#[tokio::test]
async fn many_at_once_and_full_caches_do_no_harm() {
    let stub = stub([Turn::says("good").after_ms(20)]).await;
    let folder = tempfile::tempdir().unwrap();
    let [model, _] = pair(&cached(&stub, folder.path(), CacheLimits::default()));
    let all = futures::future::join_all((0..20).map(|number| {
        let model = model.clone();
        async move {
            ask(&model, &format!("q{}", number % 2))
                .await
                .unwrap()
                .message
        }
    }))
    .await;
    assert!(all.iter().all(|message| message.text() == "good"));
    assert_eq!(entries(folder.path()).len(), 2, "no part is left behind");
    for limits in [
        CacheLimits {
            entry_bytes: 10,
            ..CacheLimits::default()
        },
        CacheLimits {
            total_bytes: 10,
            ..CacheLimits::default()
        },
    ] {
        let [model, _] = pair(&cached(&stub, folder.path(), limits));
        ask(&model, "new").await.unwrap();
        assert_eq!(entries(folder.path()).len(), 2);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Cache::open(file.path().join("below"), CacheLimits::default()).unwrap_err();
    assert_eq!(error.owner(), Owner::Configuration);
}
