//! JSON as programs print it into a log: with text before, after and between its lines, in any size, in bounded memory.
//!
//! A line is taken as a whole or not at all: one that does not continue the document is noise, and the document goes on
//! behind it, because no value of a pretty-printed document spans two lines. Only a line that is too long to hold (a
//! document without line ends) is read as it comes.

use std::borrow::Cow;

use crate::line::Line;
use crate::number::{is_plain, printed};

/// A piece of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// `{` or `[`.
    Open,
    /// `}` or `]`.
    Close,
    /// A key, as written between its quotes.
    Key(&'a str),
    /// A string, as written between its quotes.
    Text(&'a str),
    /// A number, as written.
    Number(&'a str),
    /// `true`, `false` or `null`.
    Word(&'a str),
    /// The outermost `}` was read.
    End,
}

/// What a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Part of a document.
    Json,
    /// Outside of any document.
    Outside,
    /// Inside a document, but no part of it.
    Noise,
    /// Inside a document, looking like a part of it, but not fitting: the document is damaged.
    Damage,
}

/// The deepest nesting that is followed.
const MAX_DEPTH: u8 = 120;
/// The longest value that is followed across the pieces of a long line.
const MAX_VALUE: usize = 1 << 20;

/// Reads the documents of a log.
#[derive(Debug, Default, Clone)]
pub(crate) struct Reader {
    state: State,
    tokens: Vec<Token>,
    carry: String,
}

/// Where in a document the reader is; small, so that a line can be tried and given back.
#[derive(Debug, Default, Clone, Copy)]
struct State {
    arrays: u128,
    depth: u8,
    next: Next,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Next {
    #[default]
    Document,
    Value,
    ValueOrClose,
    Key,
    KeyOrClose,
    Colon,
    CommaOrClose,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    Key,
    Text,
    Number,
    Word,
    /// A comma or colon: nothing to a user.
    Mark,
    End,
}

/// How the reading of a text ended.
enum Scan {
    /// All of it is part of the document.
    Whole(State),
    /// It ends inside a token that begins here.
    Cut(State, usize),
    /// It does not fit.
    Misfit,
}

impl Reader {
    /// Whether a document has begun and not ended.
    pub(crate) fn is_inside(&self) -> bool {
        self.state.depth > 0
    }

    /// Takes a line, and gives the pieces of the document it holds.
    pub(crate) fn line(&mut self, line: Line<'_>, mut give: impl FnMut(Event<'_>)) -> Taken {
        if !line.whole || !self.carry.is_empty() {
            return self.piece(line, &mut give);
        }
        if !self.is_inside() && !line.text.trim_start().starts_with('{') {
            return Taken::Outside;
        }
        match self.scan(line.text, false) {
            Scan::Whole(state) => {
                self.state = state;
                self.give(line.text, &mut give);
                Taken::Json
            }
            Scan::Cut(..) | Scan::Misfit if !self.is_inside() => Taken::Outside,
            Scan::Cut(..) | Scan::Misfit => misfit(line.text),
        }
    }

    /// Gives up a document that is damaged.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Takes a piece of a line that is too long to be held: what does not fit damages the document.
    fn piece(&mut self, line: Line<'_>, give: &mut impl FnMut(Event<'_>)) -> Taken {
        let text = if self.carry.is_empty() {
            Cow::Borrowed(line.text)
        } else {
            Cow::Owned(std::mem::take(&mut self.carry) + line.text)
        };
        if !self.is_inside() && !text.trim_start().starts_with('{') {
            return Taken::Outside;
        }
        match self.scan(&text, !line.ended) {
            Scan::Whole(state) => self.state = state,
            Scan::Cut(state, at) if text.len() - at < MAX_VALUE => {
                self.state = state;
                text.get(at..).unwrap_or_default().clone_into(&mut self.carry);
            }
            Scan::Cut(..) | Scan::Misfit => return Taken::Damage,
        }
        self.give(&text, give);
        Taken::Json
    }

    fn give(&self, text: &str, give: &mut impl FnMut(Event<'_>)) {
        for token in &self.tokens {
            let part = text.get(token.start..token.end).unwrap_or_default();
            give(match token.kind {
                Kind::Open => Event::Open,
                Kind::Close => Event::Close,
                Kind::Key => Event::Key(part),
                Kind::Text => Event::Text(part),
                Kind::Number => Event::Number(part),
                Kind::Word | Kind::Mark => Event::Word(part),
                Kind::End => Event::End,
            });
        }
    }

    /// Tries a text against the document; what is `open` at its end may go on.
    fn scan(&mut self, text: &str, is_open: bool) -> Scan {
        self.tokens.clear();
        let (bytes, mut state, mut at) = (text.as_bytes(), self.state, 0);
        while let Some(&byte) = bytes.get(at) {
            if byte.is_ascii_whitespace() {
                at += 1;
                continue;
            }
            if state.depth == 0 && !self.tokens.is_empty() && byte != b'{' {
                break;
            }
            let Some(token) = token(bytes, at) else { return Scan::Cut(state, at) };
            if is_open && byte != b'"' && is_scalar(byte) && token.end == bytes.len() {
                return Scan::Cut(state, at);
            }
            let Some(kind) = state.take(byte) else { return Scan::Misfit };
            at = token.end + usize::from(byte == b'"');
            if kind == Kind::Mark {
                continue;
            }
            if !is_well_formed(kind, text.get(token.start..token.end)) {
                return Scan::Misfit;
            }
            self.tokens.push(Token { kind, ..token });
            if kind == Kind::Close && state.depth == 0 {
                self.tokens.push(Token { kind: Kind::End, ..token });
            }
        }
        Scan::Whole(state)
    }
}

/// Numbers and words are looked at; a program that prints `nan` or `inf` is understood, but gives no number.
fn is_well_formed(kind: Kind, text: Option<&str>) -> bool {
    match (kind, text) {
        (Kind::Number, Some(text)) => is_plain(text) || printed(text).is_some(),
        (Kind::Word, Some(text)) => {
            matches!(text, "true" | "false" | "null") || printed(text).is_some()
        }
        _ => true,
    }
}

/// The token that begins at a byte; `None` if its end is not in sight.
fn token(bytes: &[u8], start: usize) -> Option<Token> {
    let kind = Kind::Word;
    let byte = *bytes.get(start)?;
    if byte == b'"' {
        let end = closing_quote(bytes, start + 1)?;
        return Some(Token { kind, start: start + 1, end });
    }
    if !is_scalar(byte) {
        return Some(Token { kind, start, end: start + 1 });
    }
    let rest = bytes.get(start..)?;
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let length = rest.iter().position(|byte| !part(byte)).unwrap_or(rest.len());
    Some(Token { kind, start, end: start + length.max(1) })
}

fn is_scalar(byte: u8) -> bool {
    !matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':')
}

/// Most strings are keys: shorter than what a search for the quote takes to begin.
fn closing_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

impl State {
    /// Takes the token that begins with a byte; `None` if it does not fit.
    fn take(&mut self, byte: u8) -> Option<Kind> {
        match (byte, self.next) {
            (b'{' | b'[', Next::Value | Next::ValueOrClose) | (b'{', Next::Document) => {
                self.open(byte)
            }
            (b'}', Next::KeyOrClose | Next::CommaOrClose) if !self.is_array() => self.close(),
            (b']', Next::ValueOrClose | Next::CommaOrClose) if self.is_array() => self.close(),
            (b'"', Next::Key | Next::KeyOrClose) => self.then(Next::Colon, Kind::Key),
            (b':', Next::Colon) => self.mark(Next::Value),
            (b',', Next::CommaOrClose) if self.is_array() => self.mark(Next::Value),
            (b',', Next::CommaOrClose) => self.mark(Next::Key),
            (_, Next::Value | Next::ValueOrClose) => {
                let kind = scalar(byte)?;
                self.then(Next::CommaOrClose, kind)
            }
            _ => None,
        }
    }

    fn is_array(self) -> bool {
        self.arrays & 1 == 1
    }

    fn open(&mut self, byte: u8) -> Option<Kind> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        let is_array = byte == b'[';
        self.arrays = self.arrays << 1 | u128::from(is_array);
        self.depth += 1;
        self.then(if is_array { Next::ValueOrClose } else { Next::KeyOrClose }, Kind::Open)
    }

    fn close(&mut self) -> Option<Kind> {
        self.arrays >>= 1;
        self.depth = self.depth.checked_sub(1)?;
        let next = if self.depth == 0 { Next::Document } else { Next::CommaOrClose };
        self.then(next, Kind::Close)
    }

    #[expect(clippy::unnecessary_wraps, reason = "every arm of `take` has this shape")]
    fn then(&mut self, next: Next, kind: Kind) -> Option<Kind> {
        self.next = next;
        Some(kind)
    }

    #[expect(clippy::unnecessary_wraps, reason = "every arm of `take` has this shape")]
    fn mark(&mut self, next: Next) -> Option<Kind> {
        self.next = next;
        Some(Kind::Mark)
    }
}

fn scalar(byte: u8) -> Option<Kind> {
    match byte {
        b'"' => Some(Kind::Text),
        b'-' | b'0'..=b'9' => Some(Kind::Number),
        b't' | b'f' | b'n' | b'i' | b'N' | b'I' => Some(Kind::Word),
        _ => None,
    }
}

/// A line that does not continue a document: what looks like a member of it was damaged, anything else is noise.
fn misfit(text: &str) -> Taken {
    let text = text.trim();
    let member = text.starts_with('"') && (text.contains("\":") || text.contains("\" :"));
    let bracket = matches!(text.trim_end_matches(','), "{" | "}" | "[" | "]" | "}, {" | "},{");
    if member || bracket { Taken::Damage } else { Taken::Noise }
}

/// A string as it was meant; what is written wrongly stays as written.
pub(crate) fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    serde_json::from_str(&format!("\"{raw}\"")).map_or(Cow::Borrowed(raw), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Sink, Splitter};

    #[derive(Default)]
    struct Seen {
        reader: Reader,
        events: String,
        taken: Vec<Taken>,
    }

    impl Sink for Seen {
        fn line(&mut self, line: Line<'_>) {
            let events = &mut self.events;
            let taken = self.reader.line(line, |event| {
                let parts = match event {
                    Event::Open => ["(", "", ""],
                    Event::Close => [")", "", ""],
                    Event::Key(text) => ["", text, "="],
                    Event::Text(text) => ["'", text, "' "],
                    Event::Number(text) | Event::Word(text) => ["", text, " "],
                    Event::End => [".", "", ""],
                };
                events.extend(parts);
            });
            self.taken.push(taken);
        }
    }

    fn read(text: &str) -> Seen {
        let (mut splitter, mut seen) = (Splitter::default(), Seen::default());
        splitter.feed(text.as_bytes(), &mut seen);
        splitter.finish(&mut seen);
        seen
    }

    fn check(text: &str, events: &str) {
        assert_eq!(read(text).events, events, "{text}");
    }

    #[test]
    fn documents_are_read_in_any_layout() {
        let events = "(a=1 b=(2 (c='x' )true )).";
        check(r#"{"a":1,"b":[2,{"c":"x"},true]}"#, events);
        check("{\n  \"a\" : 1,\n  \"b\" : [\n    2,\n    {\"c\":\"x\"}, true\n  ]\n}\n", events);
        check("notice\n{\"a\":1}\nmore\n{\"a\":2} done\n", "(a=1 ).(a=2 ).");
        check("{}{}", "().().");
        check(r#"{"a":"q\"}{"}"#, r#"(a='q\"}{' )."#);
    }

    #[test]
    fn noise_between_lines_leaves_the_document_whole() {
        for noise in [
            "fio: file /fsx/a larger than range",
            "2 more ranks printed the same notice",
            "[n1:123] something",
            "128   17.50",
            "--------",
            "note: null",
            "[ 3420.1] kernel: x",
        ] {
            let text = format!(
                "{{\n{noise}\n\"a\" : 1,\n{noise}\n\"b\" : [\n2,\n{noise}\n3\n]\n{noise}\n}}\n"
            );
            let seen = read(&text);
            assert_eq!(seen.events, "(a=1 b=(2 3 )).", "{noise}");
            assert_eq!(
                seen.taken.iter().filter(|taken| **taken == Taken::Noise).count(),
                4,
                "{noise}"
            );
        }
    }

    #[test]
    fn a_member_that_does_not_fit_is_damage() {
        for text in [
            "{\n\"a\" : 1\n\"b\" : 2\n}\n",
            "{\n\"a\" : 1x2,\n",
            "{\n\"a\" : 1,\n}\n",
            "{\n\"a\" :\n}\n",
        ] {
            assert!(read(text).taken.contains(&Taken::Damage), "{text}");
        }
    }

    #[test]
    fn a_document_in_one_line_of_any_length_is_followed() {
        let items: Vec<_> = (0..40_000).map(|n| format!("{{\"key-{n}\":{n}.5}}")).collect();
        let text = format!("{{\"a\":[{}]}}", items.join(","));
        assert!(text.len() > 4 * crate::line::MAX_LINE);
        let events = read(&text).events;
        assert!(events.ends_with("(key-39999=39999.5 )))."), "{}", &events[events.len() - 60..]);
        assert_eq!(events.matches("key-").count(), 40_000);
    }
}
