//! Tells which of Google's credentials are found here, and whether they give a token:
//! `cargo run -p llm-gemini --example google_token`.
#![allow(clippy::print_stdout, reason = "an example program")]

use std::collections::BTreeMap;

use llm_gemini::google::{CREDENTIALS, Missing, Tokens, VARIABLES, find};
use llm_wire::AccessTokens as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names = CREDENTIALS.iter().chain(VARIABLES);
    let set: BTreeMap<&str, String> = names
        .filter_map(|name| Some((*name, std::env::var(name).ok()?)))
        .collect();
    let found = find(&|name: &str| set.get(name).map(String::as_str));
    let found = found.map_err(|missing| match missing {
        Missing::Nowhere => "there are no credentials".to_owned(),
        Missing::Unusable(reason) => reason,
    })?;
    println!("project: {}", found.project().unwrap_or("not said"));
    println!("tokens from: {}", found.address());
    Tokens::new("vertex_ai", found, reqwest::Client::new())
        .token()
        .await?;
    println!("a token was given");
    Ok(())
}
