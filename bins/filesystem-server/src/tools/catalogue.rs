//! The tools, in the order in which they are listed.

use super::{Answers, Effect, Kind, Parameter, ToolSpec};
use crate::files;

const fn required(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        kind: Kind::Required,
        description,
    }
}

const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        description,
    }
}

/// Six that read, as in §2, then five that write.
pub(crate) const TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: "list_files",
        title: "List files",
        description: "Lists what a folder holds, one entry per line: folders as 'name' (folder), files with their media \
                      type and size in bytes. Not recursive; hidden entries are included.",
        parameters: &[optional(
            "path",
            Kind::Text("/"),
            "Folder to list, as an absolute path; / is the root of the world. Default: /",
        )],
        answers: Answers::Text,
        effect: Effect::Reads,
        run: files::list::run,
    },
    ToolSpec {
        name: "read_image_file",
        title: "Read picture",
        description: "Shows a picture, so that you can see what is in it.",
        parameters: &[required(
            "file_path",
            "Absolute path of a png, jpg, jpeg, gif or webp file, for example /scans/page1.png",
        )],
        answers: Answers::Image,
        effect: Effect::Reads,
        run: files::read_image::run,
    },
    ToolSpec {
        name: "read_text_file",
        title: "Read text file",
        description: "Returns the whole content of a text file: notes, tables as csv, configuration, source code, logs. \
                      Which extensions count as text is said when one does not. Office documents and PDF are not text.",
        parameters: &[
            required(
                "file_path",
                "Absolute path of the file, for example /notes/todo.txt",
            ),
            optional(
                "encoding",
                Kind::Text("utf-8"),
                "Character encoding, such as utf-8, latin-1, cp1252 or utf-16. Default: utf-8",
            ),
            optional(
                "max_size",
                Kind::Integer(0),
                "Has no effect; accepted for older callers. Default: 0",
            ),
        ],
        answers: Answers::Text,
        effect: Effect::Reads,
        run: files::read_text::run,
    },
    ToolSpec {
        name: "search_files",
        title: "Search files by name",
        description: "Finds files by name and returns their absolute paths, one per line. Looks at names only, not into \
                      the files.",
        parameters: &[
            required(
                "pattern",
                "Shell pattern for the file name, case-sensitive: * for any text, ? for one character, [abc] and [!abc] \
                 for one of a set. For example *.csv or report_20??.md",
            ),
            optional(
                "path",
                Kind::Text("/"),
                "Folder to search, as an absolute path. Default: /",
            ),
            optional(
                "recursive",
                Kind::Boolean(true),
                "Whether to search the folders below too. Default: true",
            ),
            optional(
                "max_results",
                Kind::Integer(100),
                "Most paths to return; 0 for as many as possible. Default: 100",
            ),
        ],
        answers: Answers::Text,
        effect: Effect::Reads,
        run: files::search::run,
    },
    ToolSpec {
        name: "get_file_metadata",
        title: "Describe file",
        description: "Tells about one file or folder: type, media type, size, permissions, times, links.",
        parameters: &[required("file_path", "Absolute path of the file or folder")],
        answers: Answers::Text,
        effect: Effect::Reads,
        run: files::metadata::run,
    },
    ToolSpec {
        name: "get_directory_tree",
        title: "Draw folder tree",
        description: "Draws a folder with the folders and files below it as a tree. Links are left out, and so is what \
                      comes after 500 entries.",
        parameters: &[
            optional(
                "path",
                Kind::Text("/"),
                "Folder to draw, as an absolute path. Default: /",
            ),
            optional(
                "max_depth",
                Kind::Integer(3),
                "Levels to draw, 1 to 10. Default: 3",
            ),
            optional(
                "include_files",
                Kind::Boolean(true),
                "Whether to draw files too, or folders only. Default: true",
            ),
            optional(
                "show_size",
                Kind::Boolean(false),
                "Whether to add the size of each file in bytes. Default: false",
            ),
        ],
        answers: Answers::Text,
        effect: Effect::Reads,
        run: files::tree::run,
    },
    ToolSpec {
        name: "write_file",
        title: "Write text file",
        description: "Creates a text file with the given content, or replaces the content of one. Its folder must exist.",
        parameters: &[
            required("file_path", "Absolute path of the file"),
            required("content", "The whole new content, as UTF-8 text"),
            optional(
                "overwrite",
                Kind::Boolean(true),
                "Whether an existing file may be replaced. Default: true",
            ),
        ],
        answers: Answers::Text,
        effect: Effect::Destroys { again: true },
        run: files::write::run,
    },
    ToolSpec {
        name: "create_directory",
        title: "Create folder",
        description: "Creates a folder and the folders above it that are missing. An existing one is left as it is.",
        parameters: &[required("path", "Absolute path of the folder")],
        answers: Answers::Text,
        effect: Effect::Adds { again: true },
        run: files::create_directory::run,
    },
    ToolSpec {
        name: "edit_file",
        title: "Edit text file",
        description: "Replaces a passage of a text file. The old text must match the file exactly and, unless all \
                      occurrences are to be replaced, occur once only.",
        parameters: &[
            required(
                "file_path",
                "Absolute path of the file, which must be UTF-8 text",
            ),
            required(
                "old_text",
                "The passage as it stands in the file, with spaces and line ends",
            ),
            required(
                "new_text",
                "What to put in its place; empty to remove the passage",
            ),
            optional(
                "replace_all",
                Kind::Boolean(false),
                "Whether to replace every occurrence. Default: false",
            ),
        ],
        answers: Answers::Text,
        effect: Effect::Destroys { again: false },
        run: files::edit::run,
    },
    ToolSpec {
        name: "move_file",
        title: "Move or rename",
        description: "Moves or renames a file or a folder. Nothing is ever overwritten.",
        parameters: &[
            required("source", "Absolute path of what to move"),
            required(
                "destination",
                "Its full new path, new name included; the folder it goes into must exist",
            ),
        ],
        answers: Answers::Text,
        effect: Effect::Destroys { again: false },
        run: files::relocate::run,
    },
    ToolSpec {
        name: "delete_file",
        title: "Delete file",
        description: "Deletes a file or an empty folder. There is no way to get it back.",
        parameters: &[required(
            "file_path",
            "Absolute path of the file or empty folder",
        )],
        answers: Answers::Text,
        effect: Effect::Destroys { again: false },
        run: files::delete::run,
    },
];
