//! Marks of list items.

use std::collections::HashMap;

use super::super::package::Package;
use super::super::xml::{Node, attribute, walk};
use super::FORMAT;
use crate::error::ExtractError;
use crate::limits::Limits;

/// Levels of a list; Word has nine.
const LEVELS: usize = 9;

/// How the lists of a document are marked, and how far they are counted.
#[derive(Default)]
pub(super) struct Lists {
    /// The abstract list of each list.
    lists: HashMap<String, String>,
    /// Levels of abstract lists that are bullets.
    bullets: HashMap<(String, usize), bool>,
    counts: HashMap<String, [u32; LEVELS]>,
}

/// Where a paragraph stands in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) list: String,
    pub(super) level: usize,
}

impl Lists {
    pub(super) fn read(package: &mut Package<'_>, limits: &Limits) -> Result<Self, ExtractError> {
        let mut lists = Self::default();
        let Some(xml) = package.xml("word/numbering.xml")? else {
            return Ok(lists);
        };
        let mut outer = String::new();
        let mut level = 0_usize;
        walk(&xml, FORMAT, limits, |node| {
            let Node::Open(name, element) = node else {
                return;
            };
            match name {
                "abstractNum" => outer = attribute(element, "abstractNumId").unwrap_or_default(),
                "num" => outer = attribute(element, "numId").unwrap_or_default(),
                "lvl" => {
                    let of = attribute(element, "ilvl").and_then(|level| level.parse().ok());
                    level = of.unwrap_or(0);
                }
                "numFmt" => {
                    let bullet = attribute(element, "val").is_some_and(|kind| kind == "bullet");
                    lists.bullets.insert((outer.clone(), level), bullet);
                }
                "abstractNumId" => {
                    let of = attribute(element, "val").unwrap_or_default();
                    lists.lists.insert(outer.clone(), of);
                }
                _ => {}
            }
        })?;
        Ok(lists)
    }

    /// The mark of the next item: `- `, or its number within its level.
    pub(super) fn mark(&mut self, item: &Item) -> String {
        let level = item.level.min(LEVELS - 1);
        let indent = "  ".repeat(level);
        let known = self.lists.get(&item.list);
        let bullet = known.and_then(|of| self.bullets.get(&(of.clone(), level)));
        // The styles of bullets and numbers have names; a list of neither kind is one of bullets.
        let numbered = match bullet {
            Some(bullet) => !bullet,
            None => item.list.starts_with("listnumber"),
        };
        if !numbered {
            return format!("{indent}- ");
        }
        let counts = self.counts.entry(item.list.clone()).or_default();
        counts[level] = counts[level].saturating_add(1);
        counts[level + 1..].fill(0);
        format!("{indent}{}. ", counts[level])
    }
}
