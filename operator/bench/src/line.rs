//! Bytes become lines, in bounded memory, whatever the bytes are.
//!
//! Line ends are LF or CRLF; a lone CR (a progress display) also ends what stands before it, but does not count as a line.
//! A byte-order mark and colours go, bytes that are no UTF-8 become U+FFFD, and a line of more than [`MAX_LINE`] bytes comes in pieces.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The longest line that is delivered whole.
pub(crate) const MAX_LINE: usize = 64 * 1024;

const ESCAPE: u8 = 0x1b;
static COLOUR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\x1b\[[0-9;?]*[A-Za-z]"));

/// One line, or a piece of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// 1-based.
    pub number: u64,
    /// Without its end.
    pub text: &'a str,
    /// Whether the end of the line was seen; what has none may be cut in the middle of a number.
    pub ended: bool,
    /// Whether this is all of the line.
    pub whole: bool,
}

/// Receives the lines of a log in order.
pub(crate) trait Sink {
    /// Takes the next line.
    fn line(&mut self, line: Line<'_>);
}

/// A pattern of this crate, compiled.
#[expect(
    clippy::expect_used,
    reason = "patterns are constants of this crate; a test compiles each of them"
)]
pub(crate) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

/// Cuts what it is fed into lines.
#[derive(Debug, Default, Clone)]
pub(crate) struct Splitter {
    carry: Vec<u8>,
    ended: u64,
    in_pieces: bool,
}

impl Splitter {
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let (head, rest) = split_line(bytes);
        let Some(head) = head else { return self.keep(rest, sink) };
        self.end_line(head, sink);
        // Checked once, most input needs no second look line by line.
        match std::str::from_utf8(rest) {
            Ok(text) if memchr::memchr2(b'\r', ESCAPE, rest).is_none() => {
                self.feed_clean(text, sink);
            }
            Ok(_) | Err(_) => self.feed_any(rest, sink),
        }
    }

    /// Takes text without carriage returns that begins a line.
    fn feed_clean(&mut self, text: &str, sink: &mut impl Sink) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
            let line = text.get(start..end).unwrap_or_default();
            start = end + 1;
            if line.len() > MAX_LINE {
                self.end_line(line.as_bytes(), sink);
                continue;
            }
            let number = self.ended + 1;
            sink.line(Line { number, text: line, ended: true, whole: true });
            self.ended += 1;
        }
        self.keep(text.as_bytes().get(start..).unwrap_or_default(), sink);
    }

    fn feed_any(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut bytes = bytes;
        while let (Some(head), rest) = split_line(bytes) {
            self.end_line(head, sink);
            bytes = rest;
        }
        self.keep(bytes, sink);
    }

    /// Delivers what has no line end, and tells how many lines there were.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) -> u64 {
        if self.carry.is_empty() {
            return self.ended;
        }
        let last = std::mem::take(&mut self.carry);
        self.deliver(&last, false, !self.in_pieces, sink);
        self.ended + 1
    }

    fn end_line(&mut self, head: &[u8], sink: &mut impl Sink) {
        if self.carry.is_empty() && head.len() <= MAX_LINE {
            self.deliver(head, true, !self.in_pieces, sink);
        } else {
            self.keep(head, sink);
            let line = std::mem::take(&mut self.carry);
            self.deliver(&line, true, !self.in_pieces, sink);
            self.carry = line;
            self.carry.clear();
        }
        self.ended += 1;
        self.in_pieces = false;
    }

    /// Keeps the start of a line; gives it out in pieces when it grows too long.
    fn keep(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        while self.carry.len() + bytes.len() > MAX_LINE {
            let (now, later) = bytes.split_at(MAX_LINE - self.carry.len());
            self.carry.extend_from_slice(now);
            let piece = std::mem::take(&mut self.carry);
            self.in_pieces = true;
            self.deliver(&piece, false, false, sink);
            bytes = later;
        }
        self.carry.extend_from_slice(bytes);
    }

    fn deliver(&self, bytes: &[u8], ended: bool, whole: bool, sink: &mut impl Sink) {
        let number = self.ended + 1;
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if number == 1 => rest,
            _ => bytes,
        };
        // Checking first is much faster than replacing, and all but a few lines need no replacement.
        let text = std::str::from_utf8(bytes)
            .map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
        let text = uncoloured(text);
        if memchr::memchr(b'\r', bytes).is_none() {
            return sink.line(Line { number, text: &text, ended, whole });
        }
        deliver_parts(&text, Line { number, text: "", ended, whole }, sink);
    }
}

/// A text without the escape sequences that colour it.
fn uncoloured(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memchr(ESCAPE, text.as_bytes()).is_none() {
        return text;
    }
    Cow::Owned(COLOUR.replace_all(&text, "").into_owned())
}

/// What stands before the first line end, and what behind it; everything stands behind where there is none.
fn split_line(bytes: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match memchr::memchr(b'\n', bytes).and_then(|at| bytes.split_at_checked(at)) {
        Some((head, rest)) => (Some(head), rest.get(1..).unwrap_or_default()),
        None => (None, bytes),
    }
}

/// Delivers the parts between carriage returns; an ended line's last CR belongs to its end.
fn deliver_parts(text: &str, of: Line<'_>, sink: &mut impl Sink) {
    let text = if of.ended { text.trim_end_matches('\r') } else { text };
    let mut parts = text.split('\r').peekable();
    while let Some(part) = parts.next() {
        let ended = of.ended || parts.peek().is_some();
        sink.line(Line { text: part, ended, ..of });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(u64, String, bool, bool)>);

    impl Sink for Seen {
        fn line(&mut self, line: Line<'_>) {
            self.0.push((line.number, line.text.to_owned(), line.ended, line.whole));
        }
    }

    fn check(bytes: &[u8], expected: &[(u64, &str, bool)]) {
        for size in 1..=bytes.len().max(1) {
            let (mut splitter, mut seen) = (Splitter::default(), Seen::default());
            bytes.chunks(size).for_each(|chunk| splitter.feed(chunk, &mut seen));
            splitter.finish(&mut seen);
            let got: Vec<_> = seen.0.iter().map(|(n, t, e, _)| (*n, t.as_str(), *e)).collect();
            assert_eq!(got, expected, "in chunks of {size}");
        }
    }

    #[test]
    fn line_ends_of_every_kind_are_understood_in_chunks_of_any_size() {
        check(b"a\nb\n", &[(1, "a", true), (2, "b", true)]);
        check(b"a\r\nb", &[(1, "a", true), (2, "b", false)]);
        check(
            b"1%\r2%\rdone\nx",
            &[(1, "1%", true), (1, "2%", true), (1, "done", true), (2, "x", false)],
        );
        check(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", &[(1, "a", true), (2, "\u{feff}b", true)]);
        check(b"\xff\n", &[(1, "\u{fffd}", true)]);
        check(b"\x1b[1;31mred\x1b[0m 1\nx\n", &[(1, "red 1", true), (2, "x", true)]);
        check(b"", &[]);
        check(b"\n\n", &[(1, "", true), (2, "", true)]);
    }

    #[test]
    fn a_line_longer_than_the_bound_comes_in_pieces_that_say_so() {
        let mut bytes = vec![b'x'; 2 * MAX_LINE + 5];
        bytes.extend_from_slice(b"\nend\n");
        let (mut splitter, mut seen) = (Splitter::default(), Seen::default());
        splitter.feed(&bytes, &mut seen);
        assert_eq!(splitter.finish(&mut seen), 2);
        let shape: Vec<_> = seen.0.iter().map(|(n, t, _, w)| (*n, t.len(), *w)).collect();
        assert_eq!(
            shape,
            [(1, MAX_LINE, false), (1, MAX_LINE, false), (1, 5, false), (2, 3, true)]
        );
    }
}
