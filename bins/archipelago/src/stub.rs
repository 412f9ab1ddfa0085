//! `archipelago stub`.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use program::Refused;
use testkit::openai::{Options, Script, serve};
use tokio_util::sync::CancellationToken;

use crate::flags::StubFlags;

/// Serves the script until Ctrl-C. The key is whatever the client sends.
pub(crate) async fn stub(flags: &StubFlags) -> Result<ExitCode, Refused> {
    let path = flags.script.display();
    let text = std::fs::read_to_string(&flags.script).map_err(|error| {
        Refused::configuration(format_args!("cannot read script `{path}`: {error}"))
    })?;
    let script = Script::parse(&text)
        .map_err(|error| Refused::configuration(format_args!("script `{path}`: {error}")))?;
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, flags.port))
        .await
        .map_err(|error| {
            Refused::configuration(format_args!(
                "cannot listen on 127.0.0.1:{}: {error}",
                flags.port
            ))
        })?;
    let address = listener.local_addr().map_err(Refused::infrastructure)?;
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
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
        .map_err(Refused::infrastructure)?;
    Ok(ExitCode::SUCCESS)
}
