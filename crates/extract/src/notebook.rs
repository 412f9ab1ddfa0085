//! Jupyter notebooks: the cells in order, with the text that code printed.

use serde_json::Value;

use crate::document::{Document, Format};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;
use crate::text;

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let broken = |reason: &dyn std::fmt::Display| ExtractError::broken("ipynb", reason);
    let notebook: Value =
        serde_json::from_str(&text::decode(bytes)).map_err(|error| broken(&error))?;
    let cells = notebook
        .get("cells")
        .and_then(Value::as_array)
        .ok_or_else(|| broken(&"it has no list `cells`"))?;
    let mut sink = TextSink::new(limits);
    for cell in cells {
        let source = joined(cell.get("source"));
        if cell.get("cell_type").and_then(Value::as_str) != Some("code") {
            sink.line(source.trim_end());
            sink.line("");
            continue;
        }
        sink.line("```");
        sink.line(source.trim_end());
        sink.line("```");
        for output in cell
            .get("outputs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let printed = output
                .get("text")
                .or_else(|| output.get("data")?.get("text/plain"))
                .or_else(|| output.get("traceback"));
            let printed = joined(printed);
            if !printed.trim().is_empty() {
                sink.line("Output:");
                sink.line(printed.trim_end());
            }
        }
        sink.line("");
    }
    Ok(sink.into_document(Format::Notebook))
}

/// Text, or lines of text in a list.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_printed_text_are_read() {
        let notebook = serde_json::json!({"cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {"cell_type": "code", "source": "print(6*7)", "outputs": [
                {"output_type": "stream", "text": ["42\n"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA"}},
            ]},
        ]});
        let document = extract(notebook.to_string().as_bytes(), &Limits::default()).unwrap();
        assert_eq!(
            document.text,
            "# Title\ntext\n\n```\nprint(6*7)\n```\nOutput:\n42\n\n"
        );
        let error = extract(b"{}", &Limits::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "broken ipynb document: it has no list `cells`"
        );
    }
}
