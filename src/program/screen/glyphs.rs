//! What stands for what on the timeline screen, with and without more than ASCII. Words say the same.

/// The glyphs.
#[derive(Clone, Copy, Debug)]
pub struct Glyphs {
    pub now: &'static str,
    pub done: &'static str,
    pub undone: &'static str,
    pub open: &'static str,
    pub left: &'static str,
    pub step: &'static str,
    pub named: &'static str,
    pub rescue: &'static str,
    pub rule: &'static str,
    pub ellipsis: &'static str,
    /// In the one cell before where something was cut off.
    pub cut: &'static str,
}

impl Glyphs {
    pub fn of(unicode: bool) -> Self {
        if unicode {
            Self {
                now: "◆",
                done: "●",
                undone: "○",
                open: "◉",
                left: "◌",
                step: "·",
                named: "◇",
                rescue: "↶",
                rule: "─",
                ellipsis: "…",
                cut: "…",
            }
        } else {
            Self {
                now: "@",
                done: "*",
                undone: "o",
                open: "%",
                left: ".",
                step: "-",
                named: "=",
                rescue: "&",
                rule: "-",
                ellipsis: "...",
                cut: "~",
            }
        }
    }
}
