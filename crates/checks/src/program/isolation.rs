//! How far a program of a task's author is kept from the machine.

pub(super) use extract::Isolation;
use extract::IsolationRule;

/// What `rule` comes to on this machine.
pub(super) async fn isolation(rule: IsolationRule) -> Result<Isolation, String> {
    // The first one tries it, which blocks.
    tokio::task::spawn_blocking(move || Isolation::by(rule))
        .await
        .map_err(|error| format!("the trial was ended: {error}"))?
}
