//! `archipelago calibrate`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use formats::document;
use formats::owner::Owner;
use formats::task::{GradingSettings, file};
use grading::{Calibration, GradeOptions, JudgedCase, LabelledCase};
use program::Refused;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::flags::{CalibrateFlags, Format, ModelFlags};
use crate::services;

/// Asks the judge about cases that people have decided, and says how far they agree. Fails where
/// no case could be judged.
pub(crate) async fn calibrate(flags: &CalibrateFlags) -> Result<ExitCode, Refused> {
    let variables = services::variables()?;
    let cases: Vec<LabelledCase> = document::read("labels", &flags.labels)?;
    let folder = match flags.labels.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let beside = folder.join(file::GRADING_SETTINGS);
    let mut settings: GradingSettings = match (&flags.judge_model, beside.is_file()) {
        (Some(model), false) => GradingSettings::of(model),
        _ => document::read("grading settings", &beside)?,
    };
    if let Some(model) = &flags.judge_model {
        settings.llm_judge_model.clone_from(model);
    }
    if let Some(votes) = flags.votes {
        settings.llm_judge_votes = Some(votes);
    }
    let models = services::models(&variables, &ModelFlags::default())?.with_script_folder(folder);
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone()).map_err(|error| {
        Refused::new(
            Owner::Infrastructure,
            format!("cannot catch signals: {error}"),
        )
    })?;
    let options = GradeOptions::default();
    let judged = Box::pin(grading::judge_cases(
        cases, &settings, &models, &options, &cancel,
    ))
    .await
    .map_err(|error| Refused::new(Owner::Infrastructure, error))?;
    let labelled: Vec<grading::Labelled> = judged.iter().map(|j| j.labelled.clone()).collect();
    let found = grading::calibration(&labelled);
    let text = match flags.format {
        Format::Text => text(&settings, &found, &judged),
        Format::Json => json(&settings, &found, &judged),
    };
    // A closed stdout only means that nobody reads.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
    Ok(if cancel.is_cancelled() {
        ExitCode::from(Owner::Cancelled.exit_code())
    } else if found.judged == 0 {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

fn text(settings: &GradingSettings, found: &Calibration, judged: &[JudgedCase]) -> String {
    let mut text = String::new();
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
    let interval = found
        .kappa_interval
        .map_or_else(String::new, |(low, high)| {
            format!(" (95 %: {low:.3} to {high:.3})")
        });
    // Writing to a String does not fail.
    let _ = writeln!(text, "judge          {}", settings.llm_judge_model);
    let _ = writeln!(
        text,
        "cases          {} judged, {} without a verdict",
        found.judged, found.without_verdict
    );
    let _ = writeln!(text, "                 judge: met   judge: not met");
    let _ = writeln!(
        text,
        "people: met      {:>10}   {:>14}",
        found.true_positives, found.false_negatives
    );
    let _ = writeln!(
        text,
        "people: not met  {:>10}   {:>14}",
        found.false_positives, found.true_negatives
    );
    let _ = writeln!(text, "accuracy       {}", number(found.accuracy));
    let _ = writeln!(text, "Cohen's kappa  {}{interval}", number(found.kappa));
    let _ = write!(text, "flip rate      {}", number(found.flip_rate));
    for case in judged {
        let said = match case.labelled.verdict {
            Some(verdict) if verdict == case.labelled.label => continue,
            Some(true) => "met",
            Some(false) => "not met",
            None => "no verdict",
        };
        let label = if case.labelled.label {
            "met"
        } else {
            "not met"
        };
        let _ = write!(text, "\n{}: people {label}, judge {said}", case.case.id);
    }
    text
}

fn json(settings: &GradingSettings, found: &Calibration, judged: &[JudgedCase]) -> String {
    let cases: Vec<serde_json::Value> = judged
        .iter()
        .map(|case| {
            json!({
                "id": case.case.id,
                "label": case.labelled.label,
                "verdict": case.labelled.verdict,
                "votes": case.labelled.votes,
                "message": case.result.message,
            })
        })
        .collect();
    let document = json!({
        "judge_model": settings.llm_judge_model, "calibration": found, "cases": cases,
    });
    format!("{document:#}")
}
