//! Files of the initial world that a judge is shown as context (§5.5, §6.4.2).

use evidence::{InitialFile, WantedFile};
use extract::ExternalProgram;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::Findings;

/// A file of the initial world.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Reference {
    /// Its path in the snapshot, with or without `filesystem/` in front.
    name: String,
    /// The sheet or slide, from 0; the whole file if absent.
    #[serde(default)]
    index: Option<usize>,
    /// How it is shown: `source` (the file as it is, if it is text) or a form such as
    /// `docx_to_text` or `spreadsheet_to_text_formulas`. The text that was extracted, if absent.
    #[serde(default)]
    transformations: Option<Vec<String>>,
}

/// What is done about a transformation.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// The file as it is.
    Source,
    /// Its text.
    Text,
    /// Pictures of its pages, beside its text.
    Pictures,
    /// The document itself, which judges are not handed.
    NotMade,
    Unknown,
}

const FAMILIES: [&str; 13] = [
    "pdf",
    "docx",
    "doc",
    "odt",
    "pptx",
    "ppt",
    "odp",
    "spreadsheet",
    "xlsx",
    "xlsm",
    "xls",
    "ods",
    "csv",
];

fn form(name: &str) -> Form {
    if name == "source" {
        return Form::Source;
    }
    let Some((family, form)) = name.split_once('_') else {
        return Form::Unknown;
    };
    match form {
        _ if !FAMILIES.contains(&family) => Form::Unknown,
        // Extracted text of workbooks has the formulas.
        "to_text" | "to_text_formulas" => Form::Text,
        "to_images" => Form::Pictures,
        "to_pdf" | "native" => Form::NotMade,
        _ => Form::Unknown,
    }
}

impl Reference {
    /// Warns of transformations that are not made, and names the programs that others need.
    pub(crate) fn check(key: &str, references: &[Self], findings: &mut Findings) {
        let key = format!("{key}.transformations");
        for reference in references {
            for name in reference.transformations.iter().flatten() {
                let rule = match form(name) {
                    Form::Source | Form::Text => continue,
                    Form::Pictures => {
                        let extension = extract::extension(&reference.name);
                        for program in ExternalProgram::to_draw(&extension) {
                            findings.needs_program(&key, program.name(), program.package());
                        }
                        continue;
                    }
                    Form::NotMade => "is not made of documents; the judge is shown their text",
                    Form::Unknown => "unknown transformation; the judge is shown the file's text",
                };
                findings.warning(&key, rule, name.as_str());
            }
        }
    }

    /// What people call it: its path, and the number of the sheet or slide from 1.
    pub(super) fn name(&self) -> String {
        match self.index {
            Some(index) => format!("{} (part {})", self.name, index + 1),
            None => self.name.clone(),
        }
    }

    /// Whether `file` was read because of it.
    pub(super) fn is_of(&self, file: &InitialFile) -> bool {
        self.name.trim_start_matches('/') == file.path
            // A file without parts is shown whole, whichever is asked for.
            && (file.index.is_none() || self.index == file.index)
    }

    /// Whether it is to be shown as pictures of its pages; a type that is not drawn is not.
    pub(super) fn is_drawn(&self) -> bool {
        let mut forms = self.transformations.iter().flatten().map(|name| form(name));
        forms.any(|form| form == Form::Pictures)
            && !ExternalProgram::to_draw(&extract::extension(&self.name)).is_empty()
    }

    /// What is asked of the world. An empty list of transformations means the source.
    pub(super) fn wanted(&self) -> WantedFile {
        let source = self.transformations.as_ref().is_some_and(|list| {
            list.is_empty()
                || (list.iter().any(|name| form(name) == Form::Source)
                    && !list.iter().any(|name| form(name) == Form::Text))
        });
        WantedFile {
            path: self.name.clone(),
            index: self.index,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(transformations: Option<&[&str]>) -> bool {
        let reference = Reference {
            name: "a.csv".to_owned(),
            index: None,
            transformations: transformations
                .map(|list| list.iter().map(|name| (*name).to_owned()).collect()),
        };
        reference.wanted().source
    }

    #[test]
    fn the_source_is_shown_where_it_is_asked_for() {
        assert!(!source(None));
        assert!(source(Some(&[])));
        assert!(source(Some(&["source", "docx_to_images"])));
        assert!(!source(Some(&["docx_to_text", "source"])));
    }

    #[test]
    fn what_is_not_made_is_warned_of() {
        let reference = serde_json::from_value(serde_json::json!({
            "name": "a", "transformations": ["xlsx_to_text_formulas", "pptx_native", "gold"],
        }));
        let mut findings = Findings::default();
        Reference::check("sources", &[reference.unwrap()], &mut findings);
        let values: Vec<_> = findings
            .list
            .iter()
            .map(|f| f.value.clone().unwrap())
            .collect();
        assert_eq!(values, ["pptx_native", "gold"]);
        assert!(findings.errors().is_none());
    }
}
