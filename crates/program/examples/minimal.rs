//! A program that waits for Ctrl-C.
//!
//! `cargo run -p program --example minimal`

use std::process::ExitCode;

use formats::owner::Owner;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    program::start_logs("info", false);
    let cancel = CancellationToken::new();
    let waited = program::block_on(async {
        program::cancel_on_signals(cancel.clone())?;
        tracing::info!("waiting");
        cancel.cancelled().await;
        Ok::<_, program::Refused>(())
    });
    match waited {
        Ok(Ok(())) => program::fail(Owner::Cancelled, "stopped by a signal"),
        Ok(Err(refused)) => refused.tell(false),
        Err(error) => program::fail(Owner::Infrastructure, error),
    }
}
