//! `archipelago stub`.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use futures::FutureExt;
use program::Refused;
use testkit::anthropic::Anthropic;
use testkit::azure::Azure;
use testkit::bedrock::Bedrock;
use testkit::gemini::Gemini;
use testkit::openai::OpenAi;
use testkit::stub::{Interface, Options, Script, serve};
use testkit::vertex::Vertex;
use tokio_util::sync::CancellationToken;

use crate::flags::{StubFlags, StubProvider};

/// Serves the script until Ctrl-C. The key is whatever the client sends.
pub(crate) async fn stub(flags: &StubFlags) -> Result<ExitCode, Refused> {
    let path = flags.script.display();
    let text = std::fs::read_to_string(&flags.script).map_err(|error| {
        Refused::configuration(format_args!("cannot read script `{path}`: {error}"))
    })?;
    let mut script = Script::parse(&text)
        .map_err(|error| Refused::configuration(format_args!("script `{path}`: {error}")))?;
    script.first.splice(0..0, flags.faults.iter().cloned());
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
    let options = Options {
        script,
        key: None,
        lenient: false,
    };
    let (hint, served) = match flags.provider {
        StubProvider::Openai => (
            hint::<OpenAi>(address),
            serve::<OpenAi>(listener, options, cancel).boxed(),
        ),
        StubProvider::Azure => (
            hint::<Azure>(address),
            serve::<Azure>(listener, options, cancel).boxed(),
        ),
        StubProvider::Anthropic => (
            hint::<Anthropic>(address),
            serve::<Anthropic>(listener, options, cancel).boxed(),
        ),
        StubProvider::Bedrock => (
            hint::<Bedrock>(address),
            serve::<Bedrock>(listener, options, cancel).boxed(),
        ),
        StubProvider::Gemini => (
            hint::<Gemini>(address),
            serve::<Gemini>(listener, options, cancel).boxed(),
        ),
        StubProvider::VertexAi => (
            hint::<Vertex>(address),
            serve::<Vertex>(listener, options, cancel).boxed(),
        ),
    };
    program::say(format_args!("listening; use it with {hint}"));
    served.await.map_err(Refused::infrastructure)?;
    Ok(ExitCode::SUCCESS)
}

/// The variables that lead a client to the stub at `address`.
fn hint<I: Interface>(address: SocketAddr) -> String {
    let (base, key) = I::VARIABLES;
    format!("{base}=http://{address}{} and any {key}", I::BASE)
}
