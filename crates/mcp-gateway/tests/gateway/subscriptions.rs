//! Who hears of changes of resources, and what the server is asked for.

use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::world::{World, config, eventually, stub};

const URI: &str = "data://info";

async fn subscribed(client: &Client) -> String {
    client.text("subscriptions", json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_hears_of_the_last_one_that_goes() {
    let world = World::serving([("one", stub())]).await;
    let (first, second) = (world.client().await, world.client().await);
    let uri = json!({"uri": URI});
    for client in [&first, &second] {
        client
            .request("resources/subscribe", uri.clone())
            .await
            .unwrap();
    }
    first
        .request("resources/unsubscribe", uri.clone())
        .await
        .unwrap();
    assert_eq!(subscribed(&first).await, r#"["data://info"]"#);
    // Twice is not for the other one either.
    first
        .request("resources/unsubscribe", uri.clone())
        .await
        .unwrap();
    assert_eq!(subscribed(&first).await, r#"["data://info"]"#);
    second
        .request("resources/unsubscribe", uri.clone())
        .await
        .unwrap();
    assert_eq!(subscribed(&first).await, "[]");
    // A session that ends takes its wishes along.
    second.request("resources/subscribe", uri).await.unwrap();
    assert_eq!(subscribed(&first).await, r#"["data://info"]"#);
    second.end_session().await;
    eventually(Duration::from_secs(5), "the server was told", async || {
        subscribed(&first).await == "[]"
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_outlive_a_restart_and_a_swap() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    client
        .request("resources/subscribe", json!({"uri": URI}))
        .await
        .unwrap();
    client.tool("crash", json!({"code": 1})).await.unwrap();
    assert_eq!(subscribed(&client).await, r#"["data://info"]"#);
    let mut other = stub();
    other.extra_tools = vec!["new".to_owned()];
    world.gateway.apply(config([("one", other)])).await.unwrap();
    eventually(
        Duration::from_secs(5),
        "the new server was asked",
        async || subscribed(&client).await == r#"["data://info"]"#,
    )
    .await;
    world.end().await;
}
