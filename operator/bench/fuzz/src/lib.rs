//! What must hold for any bytes: no reader panics, every number is finite, and how the bytes are cut changes nothing.

use hpc_bench::command::{Command, Declaration};
use hpc_bench::{Application, Expectation, Stream, report};

/// Reads bytes whole and in pieces, as one application or as whichever it is.
pub fn read(application: Option<&Application>, data: &[u8]) {
    let expected = Expectation::default();
    let begin = || match application {
        Some(application) => Stream::new(application, &expected),
        None => Stream::recognising(&expected),
    };
    let mut whole = begin();
    whole.feed(data);
    let whole = whole.finish();
    let size = data.first().map_or(1, |byte| usize::from(*byte) % 61 + 1);
    let mut pieces = begin();
    data.chunks(size).for_each(|piece| pieces.feed(piece));
    assert_eq!(pieces.finish(), whole, "pieces of {size} bytes");
    if let Ok(parsed) = &whole {
        assert!(parsed.metrics.iter().all(|metric| metric.value.is_finite()));
    }
    // Writing it out must not panic either.
    let _ = report::document(None, &whole, None).to_string();
}

/// The declared program of the tests.
pub fn command() -> Application {
    let text = include_str!("../../tests/logs/command/text.declaration.json");
    let mut declaration: Declaration = serde_json::from_str(text).expect("the committed declaration");
    let text = include_str!("../../tests/logs/command/json.declaration.json");
    let other: Declaration = serde_json::from_str(text).expect("the committed declaration");
    let json = other.metrics.into_iter().map(|mut metric| {
        metric.name += "_json";
        metric
    });
    declaration.metrics.extend(json);
    Application::Command(Command::new(declaration).expect("the committed declaration"))
}
