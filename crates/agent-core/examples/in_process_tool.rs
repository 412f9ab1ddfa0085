//! Rust functions as tools: the schema comes from a struct, its doc comments are what the model reads.
//!
//! `cargo run -p agent-core --example in_process_tool`

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{Agents, FunctionTool, RunInput, ToolSources, run};
use formats::Object;
use llm_client::Models;
use serde_json::json;

/// Arguments of `order`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// What to order, as it stands on the menu.
    dish: String,
    /// How many.
    #[schemars(range(min = 1, max = 20))]
    count: u32,
    /// Wishes to the kitchen.
    #[serde(default)]
    wishes: Vec<String>,
}

/// Arguments of a tool that takes none.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orders = Arc::new(Mutex::new(Vec::new()));
    let kitchen = Arc::clone(&orders);
    let menu = FunctionTool::typed("menu", "Lists the dishes.", |_: Nothing| async {
        Ok("soup, bread")
    })
    .read_only();
    let order = FunctionTool::typed("order", "Orders dishes.", move |order: Order| {
        let kitchen = Arc::clone(&kitchen);
        async move {
            if !["soup", "bread"].contains(&order.dish.as_str()) {
                // The model is told, and can try again.
                return Err(format!("`{}` is not on the menu", order.dish));
            }
            let wishes = order.wishes.join(", ");
            let line = format!("{} {} {wishes}", order.count, order.dish);
            let mut orders = kitchen.lock().unwrap_or_else(PoisonError::into_inner);
            orders.push(line.trim().to_owned());
            Ok(format!("order {} is taken", orders.len()))
        }
    });

    let folder = tempfile::tempdir()?;
    let script = json!([
        {"tool_calls": [{"name": "menu", "arguments": {}}]},
        {"tool_calls": [{"name": "order", "arguments": {"dish": "pizza", "count": 1}}]},
        {"tool_calls": [{"name": "order", "arguments": {"dish": "soup", "count": 2, "wishes": ["hot"]}}]},
        {"content": "Two soups are coming."}
    ]);
    std::fs::write(folder.path().join("dinner.json"), script.to_string())?;
    let models = Models::new(|_| None).with_script_folder(folder.path());
    let input = RunInput::new(models.resolve("scripted/dinner.json", &Object::new())?)
        .agent("loop_agent", json!({}))
        .user("Order dinner for two.")
        .tools(ToolSources::new().with_tool(menu).with_tool(order));
    let trajectory = run(&Agents::builtin(), input).await?;
    assert_eq!(
        trajectory.final_answer.as_deref(),
        Some("Two soups are coming.")
    );
    let orders = orders.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*orders, ["2 soup hot"]);
    Ok(())
}
