//! Prints what changed between two worlds, as a judge would see it.
//!
//! ```text
//! cargo run -p evidence --example changes -- BEFORE AFTER
//! ```

use std::error::Error;
use std::io::Write as _;

use evidence::{Evidence, EvidenceLimits, RowSources};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args_os().skip(1);
    let (Some(before), Some(after)) = (paths.next(), paths.next()) else {
        return Err("two paths of worlds are needed".into());
    };
    let trajectory =
        serde_json::json!({ "messages": [], "status": "completed", "time_elapsed": 0 });
    let evidence = Evidence::new(
        serde_json::from_value(trajectory)?,
        before.into(),
        after.into(),
        EvidenceLimits::default(),
    );
    let mut out = std::io::stdout();
    for artifact in &evidence.changes().await?.artifacts {
        writeln!(out, "{:?} {}", artifact.change, artifact.name())?;
        if let Some(diff) = &artifact.diff {
            writeln!(out, "{diff}")?;
        }
    }
    writeln!(
        out,
        "{}",
        evidence
            .database_changes(&RowSources::default())
            .await?
            .text()
    )?;
    Ok(())
}
