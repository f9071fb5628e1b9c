//! JSON with comments, as text: an item is put at the end of a list or an object, or taken out of it, and every other
//! byte stays what it is.

use anyhow::{Context, Result, bail};
use jsonc_parser::ast::{Array, Object, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::Value;

/// What JSON takes for space between two tokens.
const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// A text, and what is where in it.
pub struct Document<'a> {
    text: &'a str,
    value: Option<Node<'a>>,
    tokens: Vec<TokenAndRange<'a>>,
}

/// A list or an object: where it is, and where its items are.
#[derive(Clone, Debug)]
pub struct Container {
    range: Range,
    items: Vec<Range>,
}

/// How an item is written: what begins its lines, where it has lines of its own; and one step of indentation.
#[derive(Clone, Debug)]
pub struct Layout {
    /// A newline and the item's indentation.
    pub line: Option<String>,
    /// One step of indentation.
    pub step: String,
}

impl From<&Object<'_>> for Container {
    fn from(object: &Object) -> Self {
        Self { range: object.range, items: object.properties.iter().map(Ranged::range).collect() }
    }
}

impl From<&Array<'_>> for Container {
    fn from(array: &Array) -> Self {
        Self { range: array.range, items: array.elements.iter().map(Ranged::range).collect() }
    }
}

/// What of JSON as people write it a program reads, beside what the standard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Comments, and a comma behind the last item.
    All,
    /// Comments.
    Comments,
    /// Nothing.
    Plain,
}

fn options(reads: Reads) -> ParseOptions {
    ParseOptions {
        allow_comments: reads != Reads::Plain,
        allow_trailing_commas: reads == Reads::All,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Why a program that reads no more than this stops at a text.
pub fn stops_at(text: &str, reads: Reads) -> Option<String> {
    let collected = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false };
    parse_to_ast(text, &collected, &options(reads)).err().map(|error| error.to_string())
}

impl<'a> Document<'a> {
    /// Reads a text.
    pub fn parse(text: &'a str) -> Result<Self> {
        // A byte order mark is no part of what is parsed, and must not be lost.
        if text.starts_with('\u{feff}') {
            bail!("it begins with a byte order mark");
        }
        let collected = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = parse_to_ast(text, &collected, &options(Reads::All));
        let parsed = parsed.map_err(|error| anyhow::anyhow!("it is not JSON: {error}"))?;
        Ok(Self { text, value: parsed.value, tokens: parsed.tokens.unwrap_or_default() })
    }

    /// The object that the text is.
    pub fn top(&self) -> Result<&Object<'a>> {
        self.value.as_ref().and_then(Node::as_object).context("it is not an object of JSON")
    }

    /// The text of an item.
    pub fn item(&self, item: &impl Ranged) -> &'a str {
        &self.text[item.start()..item.end()]
    }

    /// What is before a container, and what is behind it.
    pub fn around(&self, container: &Container) -> (&'a str, &'a str) {
        (&self.text[..container.range.start], &self.text[container.range.end..])
    }

    /// Whether the container's bracket is followed by space.
    pub fn begins_with_space(&self, container: &Container) -> bool {
        self.text[container.range.start + 1..].starts_with(SPACE)
    }

    /// Whether there is nothing in the container, not even a comment, but this item.
    pub fn is_alone(&self, container: &Container, item: Range) -> bool {
        let others = self.inside(container).iter().filter(|token| !is_within(token.range, item));
        others.into_iter().all(|token| token.token == Token::Comma)
    }

    /// Whether there are comments in an item.
    pub fn has_comments(&self, item: &impl Ranged) -> bool {
        self.tokens.iter().any(|token| is_comment(token) && is_within(token.range, item.range()))
    }

    /// The text with one more item at the end of the container. No space is put in front of it where the container
    /// is empty.
    pub fn with_item(&self, container: &Container, write: impl FnOnce(&Layout) -> String) -> String {
        let inside = self.inside(container);
        let end = inside.last().map_or(container.range.start + 1, |token| token.range.end);
        let last = inside.iter().rfind(|token| !is_comment(token));
        let has_comma = last.is_some_and(|last| last.token == Token::Comma);
        let (comma, item_comma) = if has_comma { ("", ",") } else { (last.map_or("", |_| ","), "") };
        let comma_at = last.map_or(end, |last| last.range.end);
        let gap = self.gap(container, inside);
        let layout = Layout { line: gap.contains('\n').then(|| gap.clone()), step: self.step() };
        let (before, between, after) = (&self.text[..comma_at], &self.text[comma_at..end], &self.text[end..]);
        format!("{before}{comma}{between}{gap}{}{item_comma}{after}", write(&layout))
    }

    /// The text without an item of the container, the space before it and the one comma that it needed.
    pub fn without_item(&self, container: &Container, item: Range) -> String {
        let inside = self.inside(container);
        let before = inside.iter().rfind(|token| token.range.end <= item.start);
        let mut others = inside.iter().filter(|token| !is_comment(token));
        let next = others.clone().find(|token| token.range.start >= item.end);
        let last = others.rfind(|token| token.range.end <= item.start);
        let comma = next.or(last).filter(|token| token.token == Token::Comma).map(|token| token.range);
        let mut start = before.map_or(container.range.start + 1, |token| token.range.end);
        let is_line = before.is_some_and(|token| matches!(token.token, Token::CommentLine(_)));
        if is_line && !self.text[item.end..].trim_start_matches([' ', '\t', ',']).starts_with(['\r', '\n']) {
            // Nothing may get into the comment's line.
            start = item.start;
        }
        let mut gaps = [Some(Range::new(start, item.end)), comma];
        gaps.sort_by_key(|gap| gap.map(|gap| gap.start));
        let mut text = self.text.to_owned();
        for gap in gaps.into_iter().flatten().rev() {
            text.replace_range(gap.start..gap.end, "");
        }
        text
    }

    /// The space before a new item at the end of a container.
    fn gap(&self, container: &Container, inside: &[TokenAndRange]) -> String {
        let Some(last) = inside.last() else { return String::new() };
        let newline =
            if self.text.find('\n').is_some_and(|at| self.text[..at].ends_with('\r')) { "\r\n" } else { "\n" };
        let own_line = container.items.iter().rev().find_map(|item| self.indentation(item.start));
        if let Some(indentation) = own_line {
            return format!("{newline}{indentation}");
        }
        if matches!(last.token, Token::CommentLine(_)) {
            let closing = self.indentation(container.range.end - 1).unwrap_or_default();
            return format!("{newline}{closing}{}", self.step());
        }
        " ".to_owned()
    }

    /// The indentation of what begins its line.
    fn indentation(&self, start: usize) -> Option<&'a str> {
        let before = &self.text[..start];
        let space = &before[before.trim_end_matches(SPACE).len()..];
        space.rfind('\n').map(|at| &space[at + 1..])
    }

    fn step(&self) -> String {
        let top = self.top().map(Container::from).ok();
        let indentation = top.and_then(|top| top.items.iter().find_map(|item| self.indentation(item.start)));
        indentation.filter(|step| !step.is_empty()).unwrap_or("  ").to_owned()
    }

    /// The tokens between the container's brackets.
    fn inside(&self, container: &Container) -> &[TokenAndRange<'a>] {
        let Range { start, end } = container.range;
        let first = self.tokens.partition_point(|token| token.range.start <= start);
        let last = self.tokens.partition_point(|token| token.range.end < end);
        &self.tokens[first..last]
    }
}

impl Layout {
    /// An object of these properties, each on a line of its own where the object has lines of its own.
    pub fn object(&self, properties: &[String]) -> String {
        let Some(line) = &self.line else { return format!("{{ {} }}", properties.join(", ")) };
        let inner = format!("{line}{}", self.step);
        format!("{{{inner}{}{line}}}", properties.join(&format!(",{inner}")))
    }

    /// The layout of the properties of such an object.
    pub fn inner(&self) -> Self {
        Self { line: self.line.as_ref().map(|line| format!("{line}{}", self.step)), step: self.step.clone() }
    }
}

/// A value on one line, with space within its brackets.
pub fn on_one_line(value: &Value) -> String {
    match value {
        Value::Array(items) if !items.is_empty() => {
            format!("[ {} ]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(name, value)| property(name, &on_one_line(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A property of an object.
pub fn property(name: &str, value: &str) -> String {
    format!("{}: {value}", Value::from(name))
}

/// What is written there.
pub fn value_of(node: &Node) -> Value {
    match node {
        Node::StringLit(text) => Value::from(text.value.as_ref()),
        Node::NumberLit(number) => serde_json::from_str(number.value).unwrap_or_default(),
        Node::BooleanLit(boolean) => Value::from(boolean.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(value_of).collect(),
        Node::Object(object) => {
            object.properties.iter().map(|field| (field.name.as_str().to_owned(), value_of(&field.value))).collect()
        }
    }
}

fn is_comment(token: &TokenAndRange) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn is_within(inner: Range, outer: Range) -> bool {
    inner.start >= outer.start && inner.end <= outer.end
}
