//! Charts: what they are called and which cells they show.

use super::xml::{Node, walk};
use crate::error::ExtractError;
use crate::limits::Limits;

/// Series of one chart that are described.
const SERIES: usize = 50;

/// One line: the kind, the title, and each series with the cells it takes its values from.
pub(super) fn describe(
    xml: &str,
    format: &'static str,
    limits: &Limits,
) -> Result<String, ExtractError> {
    let mut chart = Chart::default();
    walk(xml, format, limits, |node| chart.visit(node))?;
    let kind = if chart.kinds.is_empty() {
        "chart".to_owned()
    } else {
        format!("{} chart", chart.kinds.join(" and "))
    };
    let title = match chart.title.trim() {
        "" => "without title".to_owned(),
        title => format!("\"{title}\""),
    };
    let left_out = chart.series.len().saturating_sub(SERIES);
    let mut series: Vec<String> = chart
        .series
        .iter()
        .take(SERIES)
        .map(Series::describe)
        .collect();
    if left_out > 0 {
        series.push(format!("{left_out} more series"));
    }
    let mut line = format!("{kind} {title}");
    if !chart.axes.is_empty() {
        line.push_str(&format!(", axes {}", chart.axes.join(", ")));
    }
    if !series.is_empty() {
        line.push_str(": ");
        line.push_str(&series.join("; "));
    }
    Ok(line)
}

#[derive(Default)]
struct Chart {
    kinds: Vec<String>,
    title: String,
    axes: Vec<String>,
    series: Vec<Series>,
    /// Names of the elements around.
    path: Vec<String>,
    text: String,
}

#[derive(Default)]
struct Series {
    name: String,
    name_reference: String,
    values: String,
    categories: String,
}

impl Series {
    fn describe(&self) -> String {
        let name = if self.name.is_empty() {
            &self.name_reference
        } else {
            &self.name
        };
        let name = if name.is_empty() { "series" } else { name };
        let mut text = format!("{name} = {}", self.values);
        if !self.categories.is_empty() {
            text.push_str(&format!(" by {}", self.categories));
        }
        text
    }
}

impl Chart {
    fn visit(&mut self, node: Node<'_, '_>) {
        match node {
            Node::Open(name, _) => {
                if let Some(kind) = name.strip_suffix("Chart")
                    && !kind.is_empty()
                    && !self.kinds.iter().any(|known| known == kind)
                {
                    self.kinds.push(kind.to_owned());
                }
                if name == "ser" {
                    self.series.push(Series::default());
                }
                self.text.clear();
                self.path.push(name.to_owned());
            }
            Node::Text(text) => self.text.push_str(text),
            Node::Close(name) => {
                self.close(name);
                self.path.pop();
                self.text.clear();
            }
        }
    }

    fn close(&mut self, name: &str) {
        let inside = |element: &str| self.path.iter().any(|open| open == element);
        let text = self.text.trim();
        if inside("ser") {
            let place = ["tx", "cat", "xVal", "val", "yVal"]
                .into_iter()
                .find(|element| inside(element));
            let Some(series) = self.series.last_mut() else {
                return;
            };
            match (place, name) {
                (Some("tx"), "v") => series.name.push_str(text),
                (Some("tx"), "f") => series.name_reference.push_str(text),
                (Some("cat" | "xVal"), "f") => series.categories.push_str(text),
                (Some("val" | "yVal"), "f") => series.values.push_str(text),
                _ => {}
            }
            return;
        }
        if name == "t" && inside("title") {
            if self.path.iter().any(|open| open.ends_with("Ax")) {
                self.axes.push(format!("\"{text}\""));
            } else {
                self.title.push_str(&self.text);
            }
        }
    }
}
