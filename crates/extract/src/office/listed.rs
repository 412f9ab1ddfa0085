//! Cells of workbooks in formats that cannot be read cell by cell: all of them, within a budget.

use serde::{Deserialize, Serialize};

/// What a cell takes in memory beside its text.
const CELL: u64 = 64;

/// A sheet with its cells.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ListedSheet {
    pub(crate) name: String,
    pub(crate) visible: bool,
    /// In the order of rows, then columns.
    pub(crate) cells: Vec<ListedCell>,
    /// Whether there are cells beyond the budget.
    pub(crate) cut: bool,
    /// What the sheet has beside cells, as sections of its text.
    pub(crate) sections: String,
}

/// A cell that holds something; row and column count from 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ListedCell {
    pub(crate) row: u32,
    pub(crate) column: u32,
    pub(crate) value: String,
    pub(crate) formula: Option<String>,
}

/// A workbook of [`ListedSheet`]s.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ListedWorkbook {
    pub(crate) sheets: Vec<ListedSheet>,
    pub(crate) names: Vec<(String, String)>,
}

/// What all cells of a workbook together may take.
pub(crate) struct CellBudget {
    bytes_left: u64,
    rows: u32,
    columns: u32,
}

impl CellBudget {
    pub(crate) const fn new(bytes: u64, rows: u32, columns: u32) -> Self {
        Self {
            bytes_left: bytes,
            rows,
            columns,
        }
    }

    /// Adds a cell; `false` where the budget is spent. Cells far out, which nobody reads, cost
    /// nothing: one of them is kept to tell that there are some.
    pub(crate) fn add(&mut self, sheet: &mut ListedSheet, cell: ListedCell) -> bool {
        if cell.row >= self.rows || cell.column >= self.columns {
            let last = sheet.cells.last();
            if last.is_some_and(|last| last.row >= self.rows || last.column >= self.columns) {
                return true;
            }
        }
        let formula = cell.formula.as_ref().map_or(0, String::len);
        let cost = CELL + (cell.value.len() + formula) as u64;
        let Some(left) = self.bytes_left.checked_sub(cost) else {
            sheet.cut = true;
            return false;
        };
        self.bytes_left = left;
        sheet.cells.push(cell);
        true
    }

    /// How many of `count` repeated rows or columns from `at` on are worth listing: those that are
    /// read, and one beyond.
    pub(crate) fn repeated(limit: u32, at: u32, count: u32) -> u32 {
        count.min(limit.saturating_sub(at).saturating_add(1)).max(1)
    }
}
