//! Markdown tables with data: the rows below a heading, with their lines.

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The line of the page, counted from one.
    pub line: usize,
    /// Text between the bars.
    pub cells: Vec<String>,
}

impl Row {
    /// The text of a cell; empty if the row is too short.
    pub(crate) fn cell(&self, at: usize) -> &str {
        self.cells.get(at).map_or("", String::as_str)
    }

    /// The code spans of a cell, without their back-ticks.
    pub(crate) fn spans(&self, at: usize) -> impl Iterator<Item = &str> {
        self.cell(at).split('`').skip(1).step_by(2)
    }
}

/// The lines of a section with their numbers: from its heading to the next of the same or a higher
/// level.
pub(crate) fn section<'t>(text: &'t str, heading: &str) -> Vec<(usize, &'t str)> {
    let level = |line: &str| line.bytes().take_while(|b| *b == b'#').count();
    let depth = level(heading);
    let lines = (1..).zip(text.lines());
    lines
        .skip_while(|(_, line)| line.trim_end() != heading)
        .skip(1)
        .take_while(|(_, line)| !(1..=depth).contains(&level(line)))
        .collect()
}

/// The first table of a section: its line, and the rows below its head.
///
/// # Errors
/// A missing section or table, or other columns.
pub(crate) fn table(
    path: &str,
    text: &str,
    heading: &str,
    columns: &[&str],
) -> Result<Vec<Row>, String> {
    let lines = section(text, heading);
    let mut rows = lines
        .into_iter()
        .skip_while(|(_, line)| !line.starts_with('|'))
        .take_while(|(_, line)| line.starts_with('|'))
        .map(|(line, text)| Row {
            line,
            cells: cells(text),
        });
    let Some(head) = rows.next() else {
        return Err(format!("{path}: no table below `{heading}`"));
    };
    if head.cells != columns {
        let (line, columns) = (head.line, columns.join(" | "));
        return Err(format!("{path}:{line}: the columns must be {columns}"));
    }
    // The line of dashes.
    Ok(rows.skip(1).collect())
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    let cells = inner.split('|');
    cells.map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n## One\n\ntext\n\n| a | b |\n|---|---|\n| `x` and `y` | z |\n\n\
                        ### Below\n\n## Two\n\n| c |\n";

    #[test]
    fn a_table_has_rows_with_lines() {
        let rows = table("p.md", PAGE, "## One", &["a", "b"]).expect("a table");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].line, 9);
        assert_eq!(rows[0].spans(0).collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!((rows[0].cell(1), rows[0].cell(2)), ("z", ""));
    }

    #[test]
    fn a_missing_table_is_told() {
        let error = table("p.md", PAGE, "## Three", &["a"]).unwrap_err();
        assert!(error.contains("no table below `## Three`"), "{error}");
        let error = table("p.md", PAGE, "## Two", &["a"]).unwrap_err();
        assert!(error.starts_with("p.md:15: the columns"), "{error}");
    }

    #[test]
    fn a_section_ends_at_the_next_of_its_level() {
        let lines = section(PAGE, "## One");
        assert!(lines.iter().any(|(_, line)| *line == "### Below"));
        assert!(!lines.iter().any(|(_, line)| *line == "## Two"));
    }
}
