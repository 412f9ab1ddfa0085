//! `archipelago stub`.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use formats::owner::Owner;
use testkit::openai::{Options, Script, serve};
use tokio_util::sync::CancellationToken;

use crate::flags::StubFlags;

/// Serves the script until Ctrl-C. The key is whatever the client sends.
pub(crate) async fn stub(flags: &StubFlags) -> ExitCode {
    match attempt(flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err((owner, message)) => program::fail(owner, message),
    }
}

async fn attempt(flags: &StubFlags) -> Result<(), (Owner, String)> {
    let path = flags.script.display();
    let script = std::fs::read_to_string(&flags.script)
        .map_err(|error| {
            (
                Owner::Configuration,
                format!("cannot read script `{path}`: {error}"),
            )
        })
        .and_then(|text| {
            Script::parse(&text)
                .map_err(|error| (Owner::Configuration, format!("script `{path}`: {error}")))
        })?;
    let address = (Ipv4Addr::LOCALHOST, flags.port);
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|error| {
            let message = format!("cannot listen on 127.0.0.1:{}: {error}", flags.port);
            (Owner::Configuration, message)
        })?;
    let infrastructure = |error: std::io::Error| (Owner::Infrastructure, error.to_string());
    let address = listener.local_addr().map_err(infrastructure)?;
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone()).map_err(infrastructure)?;
    program::say(format_args!(
        "listening; use it with OPENAI_BASE_URL=http://{address}/v1 and any OPENAI_API_KEY"
    ));
    let options = Options {
        script,
        key: None,
        lenient: false,
    };
    serve(listener, options, cancel)
        .await
        .map_err(infrastructure)
}
