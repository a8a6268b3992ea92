//! A JSON pointer (RFC 6901), followed while a document is read.

use crate::json::{Event, unescape};

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// Reads `/jobs/0/bw`, with `~1` for a slash and `~0` for a tilde in a key.
    pub fn new(text: &str) -> Option<Self> {
        let parts = text.strip_prefix('/')?.split('/');
        Some(Self(parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect()))
    }
}

/// Where in a document the reader is.
#[derive(Debug, Default, Clone)]
pub(super) struct Walk {
    path: Vec<Step>,
    next: Option<String>,
}

#[derive(Debug, Clone)]
struct Step {
    /// Key or index in what is around it; `None` for the document itself.
    name: Option<String>,
    /// Elements seen, if it is an array; an object counts nothing.
    elements: u64,
}

impl Walk {
    /// Takes the next event; the text of a value, if this is one.
    pub fn event<'a>(&mut self, event: Event<'a>) -> Option<&'a str> {
        match event {
            Event::Open => {
                let name = self.name();
                self.path.push(Step { name, elements: 0 });
            }
            Event::Close => {
                self.path.pop();
            }
            Event::Key(key) => self.next = Some(unescape(key).into_owned()),
            Event::Text(text) | Event::Number(text) | Event::Word(text) => {
                self.next = self.name();
                return Some(text);
            }
            Event::End => *self = Self::default(),
        }
        None
    }

    /// Whether the value that was just read stands at a place. To be asked before the next event.
    pub fn is_at(&self, pointer: &Pointer) -> bool {
        let path = self.path.iter().skip(1).map(|step| step.name.as_deref());
        path.chain([self.next.as_deref()]).eq(pointer.0.iter().map(|part| Some(part.as_str())))
    }

    /// Forgets the value that was just read.
    pub fn passed(&mut self) {
        self.next = None;
    }

    /// The key that stands before a value, or its index.
    fn name(&mut self) -> Option<String> {
        if let Some(key) = self.next.take() {
            return Some(key);
        }
        let around = self.path.last_mut()?;
        around.elements += 1;
        Some((around.elements - 1).to_string())
    }
}
