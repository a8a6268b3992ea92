//! Reads the output of a declared program.

use super::declare::{Command, Compiled, Declaration, Finder, Pick};
use super::pointer::Walk;
use crate::evidence::Evidence;
use crate::facts::shortened;
use crate::failure::{ParseError, Reason};
use crate::json::{self, Taken};
use crate::line::Line;
use crate::number::{Printed, printed};
use crate::parsed::{Complete, Metric, Parsed};

/// Reads one log.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    command: Command,
    found: Vec<Option<Value>>,
    sane: Vec<Option<u64>>,
    failed: Option<(u64, String)>,
    contradiction: Option<(u64, String)>,
    json: json::Reader,
    walk: Walk,
    wants_json: bool,
    parsed: Parsed,
}

#[derive(Debug, Clone, Copy)]
struct Value {
    printed: Printed,
    line: u64,
}

impl Reader {
    pub(crate) fn new(command: &Command) -> Self {
        let compiled = command.compiled();
        Self {
            found: vec![None; compiled.metrics.len()],
            sane: vec![None; compiled.sanity.len()],
            failed: None,
            contradiction: None,
            json: json::Reader::default(),
            walk: Walk::default(),
            wants_json: compiled.metrics.iter().any(|finder| matches!(finder, Finder::Json(_))),
            parsed: Parsed::default(),
            command: command.clone(),
        }
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        let command = self.command.clone();
        let compiled = command.compiled();
        if self.wants_json {
            self.document(compiled, line);
        }
        if !line.whole {
            return;
        }
        self.patterns(compiled, line);
        if line.ended {
            self.metrics(compiled, line);
        }
    }

    fn patterns(&mut self, compiled: &Compiled, line: Line<'_>) {
        for (pattern, sane) in compiled.sanity.iter().zip(&mut self.sane) {
            if pattern.is_match(line.text) {
                *sane = Some(line.number);
            }
        }
        if self.failed.is_none()
            && compiled.failure.iter().any(|pattern| pattern.is_match(line.text))
        {
            self.failed = Some((line.number, shortened(line.text)));
        }
    }

    fn metrics(&mut self, compiled: &Compiled, line: Line<'_>) {
        for (index, finder) in compiled.metrics.iter().enumerate() {
            let Finder::Line(pattern, group) = finder else { continue };
            for captures in pattern.captures_iter(line.text) {
                if let Some(text) = captures.get(*group) {
                    self.value(index, text.as_str(), line.number);
                }
            }
        }
    }

    fn document(&mut self, compiled: &Compiled, line: Line<'_>) {
        let (mut values, walk) = (Vec::new(), &mut self.walk);
        let taken = self.json.line(line, |event| {
            if let Some(text) = walk.event(event) {
                let places = compiled.metrics.iter().enumerate();
                let at = |finder: &Finder| matches!(finder, Finder::Json(pointer) if walk.is_at(pointer));
                values.extend(places.filter(|(_, finder)| at(finder)).map(|(index, _)| (index, text.to_owned())));
                walk.passed();
            }
        });
        for (index, text) in values {
            self.value(index, &text, line.number);
        }
        match taken {
            Taken::Json | Taken::Outside => {}
            Taken::Noise => self
                .parsed
                .warn(line.number, format!("not of the document: {}", shortened(line.text))),
            Taken::Damage => {
                self.json.reset();
                self.walk = Walk::default();
                self.contradiction =
                    Some((line.number, "the JSON document is damaged here".to_owned()));
            }
        }
    }

    fn value(&mut self, index: usize, text: &str, line: u64) {
        let Some(declared) = self.command.declaration().metrics.get(index) else { return };
        let Some(slot) = self.found.get_mut(index) else { return };
        let Some(printed) = printed(text.trim()) else {
            let message = format!("{}: '{}' is not a number", declared.name, shortened(text));
            self.contradiction.get_or_insert((line, message));
            return;
        };
        let value = Value { printed, line };
        match (declared.pick, &slot) {
            (_, None) | (Pick::Last, Some(_)) => *slot = Some(value),
            (Pick::First, Some(_)) => {}
            (Pick::Only, Some(first)) => {
                if first.printed != printed {
                    let message =
                        format!("{} is there twice, first in line {}", declared.name, first.line);
                    self.contradiction.get_or_insert((line, message));
                }
            }
        }
    }

    /// Ends the log.
    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        let declaration = self.command.declaration().clone();
        if let Some((line, text)) = self.failed {
            return Err(ParseError::new(line, Reason::Fatal, text));
        }
        if let Some((line, text)) = self.contradiction {
            return Err(ParseError::new(line, Reason::Malformed, text));
        }
        if self.json.is_inside() {
            return Err(ParseError::new(
                lines,
                Reason::Incomplete,
                "the JSON document does not end",
            ));
        }
        if let Some(missing) = missing(&declaration, &self.found, &self.sane) {
            return Err(ParseError::new(lines, Reason::NotFound, missing));
        }
        let values: Vec<Value> = self.found.into_iter().flatten().collect();
        one_decimal_mark(&values)?;
        let mut parsed = self.parsed;
        for (declared, value) in declaration.metrics.into_iter().zip(&values) {
            match value.printed {
                Printed::Number { value: number, .. } => parsed.metrics.push(Metric {
                    name: declared.name,
                    labels: Vec::new(),
                    value: number,
                    unit: declared.unit,
                    better: declared.better,
                    line: value.line,
                }),
                Printed::NotNumeric => {
                    parsed.warn(value.line, format!("{} is not a number", declared.name));
                }
            }
        }
        let is_numeric = parsed.metrics.len() == values.len();
        let last = values.iter().map(|value| value.line).max();
        parsed.complete =
            complete(is_numeric, self.sane.iter().flatten().max() > last.as_ref(), evidence);
        Ok(parsed)
    }
}

/// Complete is what ends with a sign of its end behind the last number: a sanity pattern, or mpirun's end.
fn complete(is_numeric: bool, is_signed: bool, evidence: &Evidence) -> Complete {
    let ended = evidence.ended.map(|ended| ended.code == 0);
    match (is_numeric, ended) {
        (false, _) | (true, Some(false)) => Complete::No,
        (true, Some(true)) => Complete::Yes,
        (true, None) if is_signed => Complete::Yes,
        (true, None) => Complete::Unknown,
    }
}

fn missing(
    declaration: &Declaration,
    found: &[Option<Value>],
    sane: &[Option<u64>],
) -> Option<String> {
    let metric = declaration.metrics.iter().zip(found).find(|(_, found)| found.is_none());
    if let Some((metric, _)) = metric {
        return Some(format!("metric '{}' is not in the output", metric.name));
    }
    let pattern = declaration.sanity.iter().zip(sane).find(|(_, sane)| sane.is_none());
    pattern.map(|(pattern, _)| format!("sanity pattern '{pattern}' is not in the output"))
}

fn one_decimal_mark(values: &[Value]) -> Result<(), ParseError> {
    let mut marks = values.iter().filter_map(|value| match value.printed {
        Printed::Number { comma, .. } => Some((comma?, value.line)),
        Printed::NotNumeric => None,
    });
    let Some((first, _)) = marks.next() else { return Ok(()) };
    let Some((_, line)) = marks.find(|(comma, _)| *comma != first) else { return Ok(()) };
    Err(ParseError::new(line, Reason::Malformed, "decimal commas and decimal points in one output"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{DeclarationError, Declared, Source};
    use crate::parsed::Better;
    use crate::{Application, Expectation, parse};

    fn metric(name: &str, source: Source, pick: Pick) -> Declared {
        let better = Some(Better::Lower);
        Declared { name: name.to_owned(), unit: "s".into(), better, source, pick }
    }

    fn line(pattern: &str, pick: Pick) -> Declaration {
        let metrics = vec![metric("time", Source::Regex(pattern.to_owned()), pick)];
        Declaration { metrics, sanity: vec!["^DONE".to_owned()], failure: vec!["NaN".to_owned()] }
    }

    fn read(declaration: &Declaration, text: &str) -> Result<Parsed, ParseError> {
        let command = Command::new(declaration.clone()).unwrap();
        parse(&Application::Command(command), text.as_bytes(), &Expectation::default())
    }

    #[test]
    fn a_number_is_found_where_it_was_declared() {
        for (pick, text, expected) in [
            (Pick::Only, "time 1.5 s\nDONE\n", Ok((1.5, Complete::Yes))),
            (Pick::Only, "time 1.5 s\ntime 1.5 s\nDONE\n", Ok((1.5, Complete::Yes))),
            (Pick::Only, "time 1.5 s\ntime 2.5 s\nDONE\n", Err(Reason::Malformed)),
            (Pick::First, "time 1.5 s\ntime 2.5 s\nDONE\n", Ok((1.5, Complete::Yes))),
            (Pick::Last, "time 1.5 s\ntime 2.5 s\nDONE\n", Ok((2.5, Complete::Yes))),
            (Pick::Last, "DONE\ntime 2.5 s\n", Ok((2.5, Complete::Unknown))),
            (Pick::Only, "time 1.5 s\n", Err(Reason::NotFound)),
            (Pick::Only, "DONE\n", Err(Reason::NotFound)),
            (Pick::Only, "time 1.5 s\nNaN\nDONE\n", Err(Reason::Fatal)),
            (Pick::Only, "time x s\nDONE\n", Err(Reason::Malformed)),
            (Pick::Only, "time 1.5 s", Err(Reason::NotFound)),
            (Pick::Only, "time 1,5 s\nDONE\n", Ok((1.5, Complete::Yes))),
        ] {
            let got = read(&line(r"time (\S+) s", pick), text);
            let got = got
                .map(|parsed| (parsed.metrics[0].value, parsed.complete))
                .map_err(|error| error.reason);
            assert_eq!(got, expected, "{pick:?} {text}");
        }
    }

    #[test]
    fn a_pointer_leads_into_a_document_with_text_around_it() {
        let text = "notice\n{\n\"a/b\" : [\n1,\nnoise\n{ \"x\" : 2.5 }\n],\n\"c\" : 3\n}\n";
        for (pointer, expected) in [
            ("/a~1b/1/x", Some(2.5)),
            ("/a~1b/0", Some(1.0)),
            ("/c", Some(3.0)),
            ("/a~1b/2", None),
            ("/x", None),
        ] {
            let metrics = vec![metric("time", Source::JsonPointer(pointer.to_owned()), Pick::Only)];
            let declaration = Declaration { metrics, sanity: Vec::new(), failure: Vec::new() };
            let got = read(&declaration, text).ok().map(|parsed| parsed.metrics[0].value);
            assert_eq!(got, expected, "{pointer}");
        }
    }

    fn refused(pattern: &str) -> String {
        let error = Command::new(line(pattern, Pick::Only)).unwrap_err();
        format!("{error:?}").split_whitespace().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_refused_before_anything_runs() {
        for (pattern, expected) in [
            ("(a", "Pattern"),
            ("((a{500}){500}){500}", "Pattern"),
            ("(a)(b)", "Group"),
            ("a", "Group"),
        ] {
            assert_eq!(refused(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn a_declaration_without_sense_is_refused() {
        let nothing = Declaration { metrics: Vec::new(), sanity: Vec::new(), failure: Vec::new() };
        let with = |metrics| Command::new(Declaration { metrics, ..nothing.clone() }).unwrap_err();
        let pointer = metric("time", Source::JsonPointer("a".to_owned()), Pick::Only);
        let named = |name: &str| metric(name, Source::Regex("(a)".to_owned()), Pick::Only);
        assert!(matches!(with(vec![pointer]), DeclarationError::Pointer { .. }));
        assert!(matches!(with(Vec::new()), DeclarationError::Count { .. }));
        assert!(matches!(with(vec![named("a"), named("a")]), DeclarationError::Name { .. }));
        assert!(matches!(with(vec![named("A b")]), DeclarationError::Name { .. }));
    }
}
