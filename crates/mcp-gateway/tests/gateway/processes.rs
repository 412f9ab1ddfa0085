//! Processes of stubs, found by a mark in their environment, and the end of each of them (A2).

use std::fs;
use std::time::Duration;

use formats::apps::{AppsConfig, ServerConfig};
use testkit::mcp::StubServer;

use crate::world::{World, config, eventually, options, program, servers, stdio, stub};

/// Ids of the stubs of this test executable whose settings hold `mark`; zombies have no
/// environment and are looked for by [`zombies`].
pub(crate) fn stubs(mark: &str) -> Vec<u32> {
    let this = std::env::current_exe().unwrap();
    processes()
        .filter(|id| fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe == this))
        .filter(|id| {
            fs::read(format!("/proc/{id}/environ"))
                .is_ok_and(|text| String::from_utf8_lossy(&text).contains(mark))
        })
        .collect()
}

/// Waits until no stub with `mark` is left.
pub(crate) async fn gone(mark: &str) {
    let limit = Duration::from_secs(5);
    eventually(limit, mark, async || stubs(mark).is_empty()).await;
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Children of this process that have ended and were not waited for.
fn zombies() -> usize {
    let this = std::process::id().to_string();
    processes()
        .filter(|id| {
            let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else {
                return false;
            };
            let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let mut fields = after_name.split_whitespace();
            fields.next() == Some("Z") && fields.next() == Some(this.as_str())
        })
        .count()
}

/// A stub whose processes can be found.
pub(crate) fn marked(mark: &str) -> StubServer {
    StubServer {
        extra_tools: vec![mark.to_owned()],
        ..stub()
    }
}

/// The stub behind a shell that stays between it and the gateway.
fn wrapped(stub: &StubServer, script: &str) -> ServerConfig {
    let direct = stdio(stub);
    let mut args = vec!["-c", script, direct.command.as_deref().unwrap()];
    args.extend(direct.args.iter().flatten().map(String::as_str));
    ServerConfig {
        env: direct.env.clone(),
        ..program("sh", &args)
    }
}

/// Applies the configuration ten times in other words, then none, then ends the gateway.
async fn exactly_one_each_time(mark: &str, configuration: impl Fn(usize) -> AppsConfig) {
    let world = World::with(options()).await;
    let limit = Duration::from_secs(6);
    for round in 0..10 {
        world.gateway.apply(configuration(round)).await.unwrap();
    }
    eventually(limit, "one process is left", async || {
        stubs(mark).len() == 1
    })
    .await;
    let client = world.client().await;
    assert_eq!(client.text(mark, serde_json::json!({})).await, mark);
    world.gateway.apply(AppsConfig::default()).await.unwrap();
    eventually(limit, "no process is left", async || stubs(mark).is_empty()).await;
    world.gateway.apply(configuration(0)).await.unwrap();
    assert_eq!(stubs(mark).len(), 1);
    world.end().await;
    assert_eq!(
        stubs(mark),
        Vec::<u32>::new(),
        "after the end of the gateway"
    );
    eventually(limit, "no zombie is left", async || zombies() == 0).await;
}

/// Makes each round another configuration.
fn round(mut server: ServerConfig, round: usize) -> AppsConfig {
    let env = server.env.get_or_insert_default();
    env.insert("ROUND".to_owned(), round.to_string());
    servers([("one", server)])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_a_wrapper_leaves_with_it() {
    let mark = "wrapped-server";
    exactly_one_each_time(mark, |number| {
        round(wrapped(&marked(mark), r#""$0" "$@"; true"#), number)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ignores_its_end_is_killed() {
    let mark = "stubborn-server";
    let stubborn = StubServer {
        ignore_eof: true,
        ..marked(mark)
    };
    exactly_one_each_time(mark, |number| {
        round(
            wrapped(&stubborn, r#"trap "" TERM; "$0" "$@"; true"#),
            number,
        )
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_gateway_ends_its_servers() {
    let mark = "dropped-gateway";
    let gateway = mcp_gateway::Gateway::new(options());
    gateway
        .apply(config([("one", marked(mark))]))
        .await
        .unwrap();
    assert_eq!(stubs(mark).len(), 1);
    drop(gateway);
    eventually(Duration::from_secs(6), "its server is gone", async || {
        stubs(mark).is_empty()
    })
    .await;
}

#[test]
fn a_runtime_that_ends_takes_the_servers_along() {
    let mark = "dropped-runtime";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let gateway = mcp_gateway::Gateway::new(options());
    let stubborn = StubServer {
        ignore_eof: true,
        ..marked(mark)
    };
    runtime
        .block_on(gateway.apply(config([("one", stubborn)])))
        .unwrap();
    assert_eq!(stubs(mark).len(), 1);
    drop(runtime);
    let end = std::time::Instant::now() + Duration::from_secs(6);
    while !stubs(mark).is_empty() {
        assert!(std::time::Instant::now() < end, "the server is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
