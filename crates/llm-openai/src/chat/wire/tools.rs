//! Tools as they are written into a request.

use formats::chat::ToolDefinition;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Style, mark};
use crate::chat::dialect::Dialect;
use llm_wire::repair::{complete_parameters, openai_parameters};

/// The tools of a request.
pub(crate) struct Tools<'a> {
    pub(crate) tools: &'a [ToolDefinition],
    pub(crate) style: Style<'a>,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let style = self.style;
        let last = self.tools.len().saturating_sub(1);
        serializer.collect_seq(self.tools.iter().enumerate().map(|(index, tool)| Tool {
            tool,
            style,
            marked: style.marks && index == last,
        }))
    }
}

struct Tool<'a> {
    tool: &'a ToolDefinition,
    style: Style<'a>,
    marked: bool,
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Function<'f>(&'f Tool<'f>);
        impl Serialize for Function<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Tool { tool, style, .. } = self.0;
                let function = &tool.function;
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("name", &style.names.wire(&function.name))?;
                if !function.description.is_empty() {
                    map.serialize_entry("description", &function.description)?;
                }
                // OpenAI takes no union at the root; others may.
                let parameters = match style.dialect {
                    Dialect::OpenAi => openai_parameters(&function.parameters),
                    Dialect::Compatible | Dialect::Proxy => {
                        complete_parameters(&function.parameters)
                    }
                };
                map.serialize_entry("parameters", &*parameters)?;
                for (key, value) in &function.extra {
                    if style.dialect != Dialect::OpenAi || key == "strict" {
                        map.serialize_entry(key, value)?;
                    }
                }
                map.end()
            }
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &Function(self))?;
        if self.style.dialect != Dialect::OpenAi {
            for (key, value) in &self.tool.extra {
                map.serialize_entry(key, value)?;
            }
        }
        if self.marked && !self.tool.extra.contains_key("cache_control") {
            map.serialize_entry("cache_control", &mark())?;
        }
        map.end()
    }
}
