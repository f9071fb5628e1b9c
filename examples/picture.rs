//! Draws what a terminal showed, on stdin with its escape codes, as an SVG on stdout. For `scripts/demo.sh`.

use anstyle_svg::{Term, WIN10_CONSOLE};
use std::io::{self, Read, Write};

fn main() -> io::Result<()> {
    let mut shown = String::new();
    io::stdin().read_to_string(&mut shown)?;
    // A terminal goes back to the start of the line itself.
    let svg = Term::new().palette(WIN10_CONSOLE).min_width_px(760).render_svg(&shown.replace('\r', ""));
    io::stdout().write_all(svg.as_bytes())
}
