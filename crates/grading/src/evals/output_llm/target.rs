//! What of the agent's output a criterion is about (`spec/grading.md` §5.2, §5.3).

use extract::ExternalProgram;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::problem::Findings;
use evidence::Artifact;

/// The value of `expected_file_type`: a name of the table, or a list of extensions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ExpectedFileType {
    /// A name, such as `PDF Documents (.pdf)`, or its short form, such as `pdf`.
    Name(String),
    /// Extensions, with or without dot.
    Extensions(Vec<String>),
}

/// What is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The answer and all changed files.
    All,
    /// The answer alone.
    AnswerOnly,
    /// Changed files of these extensions (lower case, without dot).
    Files {
        label: String,
        extensions: Vec<String>,
    },
    /// Rows of databases.
    Database,
}

/// Full name, short forms, extensions.
const FILES: &[(&str, &[&str], &[&str])] = &[
    (
        "Word Documents (.docx, .doc, .odt)",
        &["docx", "word", "document"],
        &["docx", "doc", "odt"],
    ),
    ("Text Files (.txt)", &["txt", "text"], &["txt"]),
    ("PDF Documents (.pdf)", &["pdf"], &["pdf"]),
    (
        "Spreadsheets (.xlsx, .xls, .xlsm, .ods)",
        &["xlsx", "spreadsheet"],
        &["xlsx", "xls", "xlsm", "ods"],
    ),
    (
        "Presentations (.pptx, .ppt, .odp)",
        &["pptx", "presentation"],
        &["pptx", "ppt", "odp"],
    ),
    ("Python Files (.py)", &["py", "python"], &["py"]),
    (
        "JavaScript/TypeScript (.js, .ts, .jsx, .tsx)",
        &["js", "ts", "javascript", "typescript"],
        &["js", "ts", "jsx", "tsx"],
    ),
    ("Markdown (.md)", &["md", "markdown"], &["md"]),
    (
        "JSON/YAML (.json, .yaml, .yml)",
        &["json", "yaml"],
        &["json", "yaml", "yml"],
    ),
    (
        "Images (.png, .jpg, .jpeg, .webp)",
        &["image", "picture"],
        &["png", "jpg", "jpeg", "webp"],
    ),
    ("CSV Files (.csv)", &["csv"], &["csv"]),
];

impl Target {
    /// The target that `value` names. An unknown name means everything, and is returned as the
    /// error to warn of.
    pub(crate) fn of(value: Option<&ExpectedFileType>) -> Result<Self, String> {
        let name = match value {
            None => return Ok(Self::All),
            Some(ExpectedFileType::Extensions(list)) => {
                let extensions: Vec<String> = list
                    .iter()
                    .map(|extension| extension.trim().trim_start_matches('.').to_lowercase())
                    .filter(|extension| !extension.is_empty())
                    .collect();
                return Ok(if extensions.is_empty() {
                    Self::All
                } else {
                    Self::Files {
                        label: format!("files of type {}", extensions.join(", ")),
                        extensions,
                    }
                });
            }
            Some(ExpectedFileType::Name(name)) => name.trim(),
        };
        match name {
            "" | "all" | "All output (modified files and final message in console)" => {
                return Ok(Self::All);
            }
            "final_answer" | "Final Answer Only (No Files)" => return Ok(Self::AnswerOnly),
            "database" | "Database Files (.db)" => return Ok(Self::Database),
            _ => {}
        }
        FILES
            .iter()
            .find(|(label, aliases, _)| *label == name || aliases.contains(&name))
            .map(|(label, _, extensions)| Self::Files {
                label: (*label).to_owned(),
                extensions: extensions.iter().map(|e| (*e).to_owned()).collect(),
            })
            .ok_or_else(|| name.to_owned())
    }

    /// The target of a short name that stands in the table; everything for another name.
    pub(crate) fn named(name: &str) -> Self {
        let name = ExpectedFileType::Name(name.to_owned());
        Self::of(Some(&name)).unwrap_or(Self::All)
    }

    /// Warns of a name that nobody knows.
    pub(crate) fn check(value: Option<&ExpectedFileType>, findings: &mut Findings) {
        if let Err(unknown) = Self::of(value) {
            let rule = "unknown file type; everything is judged";
            findings.warning("expected_file_type", rule, unknown);
        }
    }

    /// Names the programs that draw the documents that it may have.
    pub(crate) fn check_drawn(&self, key: &str, findings: &mut Findings) {
        let extensions = match self {
            Self::All => vec!["docx"],
            Self::AnswerOnly | Self::Database => Vec::new(),
            Self::Files { extensions, .. } => extensions.iter().map(String::as_str).collect(),
        };
        for program in extensions.into_iter().flat_map(ExternalProgram::to_draw) {
            findings.needs_program(key, program.name(), program.package());
        }
    }

    pub(crate) const fn has_answer(&self) -> bool {
        matches!(self, Self::All | Self::AnswerOnly)
    }

    pub(crate) const fn has_files(&self) -> bool {
        !matches!(self, Self::AnswerOnly)
    }

    pub(crate) fn accepts(&self, artifact: &Artifact) -> bool {
        match self {
            Self::All => true,
            Self::AnswerOnly | Self::Database => false,
            Self::Files { extensions, .. } => extensions.contains(&artifact.extension()),
        }
    }
}

/// Whether the path is one of `names`, or ends in one after a slash.
pub(crate) fn is_named(path: &str, names: &[&str]) -> bool {
    let path = path.trim_start_matches('/');
    names.iter().any(|name| {
        path == *name
            || path
                .strip_suffix(name)
                .is_some_and(|folder| folder.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use formats::diff::ChangeKind;

    use super::*;

    fn of(name: &str) -> Result<Target, String> {
        Target::of(Some(&ExpectedFileType::Name(name.to_owned())))
    }

    #[test]
    fn full_names_short_forms_and_lists_are_known() {
        assert_eq!(Target::of(None), Ok(Target::All));
        assert_eq!(of("Final Answer Only (No Files)"), Ok(Target::AnswerOnly));
        assert_eq!(
            of("Spreadsheets (.xlsx, .xls, .xlsm, .ods)"),
            of("spreadsheet")
        );
        assert_eq!(of("Database Files (.db)"), Ok(Target::Database));
        assert_eq!(of("Sculptures"), Err("Sculptures".to_owned()));
        let list = ExpectedFileType::Extensions(vec![".TEX".into(), "bib".into()]);
        let Ok(Target::Files { extensions, .. }) = Target::of(Some(&list)) else {
            panic!("a list of extensions is a target");
        };
        assert_eq!(extensions, ["tex", "bib"]);
    }

    /// The table of §5.2, as it stands there.
    #[test]
    fn every_name_of_the_reference_is_known() {
        for (name, expected) in [
            ("Word Documents (.docx, .doc, .odt)", ".docx .doc .odt"),
            ("Text Files (.txt)", ".txt"),
            ("PDF Documents (.pdf)", ".pdf"),
            (
                "Spreadsheets (.xlsx, .xls, .xlsm, .ods)",
                ".xlsx .xls .xlsm .ods",
            ),
            ("Presentations (.pptx, .ppt, .odp)", ".pptx .ppt .odp"),
            ("Python Files (.py)", ".py"),
            (
                "JavaScript/TypeScript (.js, .ts, .jsx, .tsx)",
                ".js .ts .jsx .tsx",
            ),
            ("Markdown (.md)", ".md"),
            ("JSON/YAML (.json, .yaml, .yml)", ".json .yaml .yml"),
            ("Images (.png, .jpg, .jpeg, .webp)", ".png .jpg .jpeg .webp"),
        ] {
            let Ok(Target::Files { label, extensions }) = of(name) else {
                panic!("{name}");
            };
            assert_eq!(label, name);
            let expected: Vec<&str> = expected.split(' ').map(|e| &e[1..]).collect();
            assert_eq!(extensions, expected, "{name}");
        }
        let all = "All output (modified files and final message in console)";
        assert_eq!(of(all), Ok(Target::All));
        assert!(Target::All.has_answer() && Target::All.has_files());
        assert!(Target::AnswerOnly.has_answer() && !Target::AnswerOnly.has_files());
        let files = of("pdf").unwrap();
        assert!(!files.has_answer() && files.has_files());
    }

    #[test]
    fn files_are_accepted_by_their_last_extension_in_any_case() {
        let target = of("Text Files (.txt)").unwrap();
        let accepts = |path: &str| target.accepts(&Artifact::new(path, ChangeKind::Deleted));
        assert!(accepts("a/b.TXT"));
        assert!(!accepts("a/b.txt.gz"));
        assert!(!accepts("txt"));
    }

    #[test]
    fn names_match_whole_components() {
        assert!(is_named("/a/report.md", &["report.md"]));
        assert!(is_named("a/report.md", &["a/report.md"]));
        assert!(!is_named("a/my-report.md", &["report.md"]));
    }
}
