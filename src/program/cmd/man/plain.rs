//! A manual page as plain text, for where there is no man program: the few requests that oxundo's pages use.

/// How wide the text is.
const WIDTH: usize = 78;

/// Where text begins, below a heading.
const INDENT: usize = 4;

/// Where an example begins.
const LITERAL: usize = 8;

/// Where text begins below a term.
const HANGING: usize = 10;

/// Gives the text.
pub fn text(page: &str) -> String {
    let mut plain = Plain { indent: INDENT, ..Plain::default() };
    for line in page.lines() {
        plain.line(line);
    }
    plain.flush();
    plain.text
}

#[derive(Default)]
struct Plain {
    text: String,
    paragraph: Vec<String>,
    indent: usize,
    is_literal: bool,
    /// Whether the heading is the last line.
    is_below_heading: bool,
    /// Whether the next line is a term.
    is_term: bool,
}

impl Plain {
    fn line(&mut self, line: &str) {
        let (request, rest) = line.split_once(' ').unwrap_or((line, ""));
        match request {
            ".TH" | ".ad" | ".nh" | ".\\\"" => {}
            ".SH" => self.heading(rest, 0),
            ".SS" => self.heading(rest, 2),
            ".PP" => self.begin(INDENT),
            ".TP" => {
                self.begin(INDENT);
                self.is_term = true;
            }
            ".IP" => {
                self.flush();
                self.paragraph.push("-".to_owned());
            }
            ".RS" => {
                self.flush();
                self.indent = if self.indent == INDENT { LITERAL } else { HANGING };
            }
            ".RE" => {
                self.flush();
                self.indent = INDENT;
            }
            ".br" => self.flush(),
            ".nf" => {
                self.flush();
                self.is_literal = true;
            }
            ".fi" => self.is_literal = false,
            _ if self.is_literal => self.put(&unescaped(line)),
            _ if self.is_term => {
                self.put(&unescaped(line));
                self.is_term = false;
                self.indent = HANGING;
            }
            _ => self.paragraph.extend(unescaped(line).split_whitespace().map(str::to_owned)),
        }
    }

    fn heading(&mut self, words: &str, indent: usize) {
        self.begin(indent);
        self.put(&unescaped(words.trim_matches('"')));
        self.indent = INDENT;
        self.is_below_heading = true;
    }

    fn begin(&mut self, indent: usize) {
        self.flush();
        let is_first = self.text.is_empty() || std::mem::take(&mut self.is_below_heading);
        if !is_first {
            self.text.push('\n');
        }
        self.indent = indent;
    }

    fn put(&mut self, line: &str) {
        let indent = if line.is_empty() { 0 } else { self.indent };
        self.is_below_heading = false;
        self.text.push_str(&format!("{:indent$}{line}\n", ""));
    }

    /// Writes the paragraph down, within the width.
    fn flush(&mut self) {
        let mut line = String::new();
        for word in std::mem::take(&mut self.paragraph) {
            if !line.is_empty() && self.indent + line.len() + 1 + word.len() > WIDTH {
                self.put(&std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        if !line.is_empty() {
            self.put(&line);
        }
    }
}

fn unescaped(line: &str) -> String {
    let mut text = line.to_owned();
    for (escape, plain) in [
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
        ("\\-", "-"),
        ("\\&", ""),
        ("\\(aq", "'"),
        ("\\*(Aq", "'"),
        ("\\(ti", "~"),
        ("\\(ha", "^"),
        ("\\(ga", "`"),
        ("\\e", "\\"),
    ] {
        text = text.replace(escape, plain);
    }
    text
}
