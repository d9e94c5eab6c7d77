//! The flame graph as SVG.

use super::{Node, escaped, time_text};
use a99_core::costs::MICRO;
use std::fmt::Write as _;

/// Size of a row and of the graph.
const ROW: u32 = 18;
const WIDTH: f64 = 1000.0;

/// Narrower frames are left out.
const LEAST: f64 = 0.5;

/// Width of a character, about.
const CHAR: f64 = 6.6;

/// Fill colours, by a hash of the name.
const COLORS: [&str; 6] = [
    "#f4a261", "#e9c46a", "#f6bd60", "#84a59d", "#9ec1a3", "#cfe0c3",
];

/// Draws a graph whose widths are fuel.
pub(super) fn flame(root: &Node, name: &str) -> String {
    let height = (depth(root) + 1) * ROW + 4;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"100%\" font-family=\"monospace\" font-size=\"11\" role=\"img\" \
         aria-label=\"Fuel by function: {}\">\n",
        escaped(name)
    );
    draw(root, 0.0, WIDTH, 0, root.fuel.max(1), &mut out);
    out.push_str("</svg>\n");
    out
}

/// Depth is bounded by the frames of a sample.
fn depth(node: &Node) -> u32 {
    node.children
        .values()
        .map(|child| 1 + depth(child))
        .max()
        .unwrap_or(0)
}

fn draw(node: &Node, x: f64, width: f64, row: u32, total: i64, out: &mut String) {
    let y = row * ROW;
    let hash = node.name.bytes().fold(0_usize, |hash, byte| {
        hash.wrapping_mul(31) + usize::from(byte)
    });
    let color = COLORS[hash % COLORS.len()];
    let fuel = node.fuel as f64 / MICRO as f64;
    let share = 100.0 * node.fuel as f64 / total as f64;
    let chars = (width / CHAR) as usize;
    let label: String = match node.name.chars().count() > chars {
        true => node
            .name
            .chars()
            .take(chars.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => node.name.clone(),
    };
    let label = if chars < 3 { String::new() } else { label };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<g><title>{}: {fuel:.4} fuel ({share:.1} %), {}</title><rect x=\"{x:.2}\" y=\"{y}\" \
         width=\"{width:.2}\" height=\"{}\" fill=\"{color}\" stroke=\"#fff\" stroke-width=\"0.5\"/>\
         <text x=\"{:.2}\" y=\"{}\" fill=\"#222\">{}</text></g>",
        escaped(&node.name),
        time_text(node.time),
        ROW - 1,
        x + 3.0,
        y + ROW - 6,
        escaped(&label),
    );
    let mut at = x;
    for child in node.children.values() {
        let part = width * child.fuel as f64 / node.fuel.max(1) as f64;
        if part >= LEAST {
            draw(child, at, part, row + 1, total, out);
        }
        at += part;
    }
}
