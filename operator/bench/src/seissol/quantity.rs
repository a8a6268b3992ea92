//! Quantities as SeisSol prints them: compound durations and SI prefixes, which it chooses itself.

/// Seconds of `412.731 seconds.`, `1 h 3 min 12.3457 s`, `250.1000 ms`; `None` if a part of it is not a duration. What
/// stands in brackets behind it is another number.
pub(super) fn seconds(text: &str, mut read: impl FnMut(&str) -> Option<f64>) -> Option<f64> {
    let text = text.split('(').next().unwrap_or(text);
    let mut tokens = text.split_whitespace().peekable();
    tokens.peek()?;
    let mut sum = 0.0;
    let mut last = f64::INFINITY;
    while let Some(number) = tokens.next() {
        let scale = unit(tokens.next()?.trim_end_matches('.'))?;
        if scale >= last {
            return None;
        }
        sum += read(number)? * scale;
        last = scale;
    }
    Some(sum)
}

fn unit(text: &str) -> Option<f64> {
    match text {
        "d" => Some(86_400.0),
        "h" => Some(3600.0),
        "min" => Some(60.0),
        "s" | "seconds" => Some(1.0),
        "ms" => Some(1e-3),
        "µs" | "μs" | "us" => Some(1e-6),
        "ns" => Some(1e-9),
        _ => None,
    }
}

/// The number of `12.3456 TFLOP/s` in billions of its unit; `None` if the unit is another.
pub(super) fn giga(
    text: &str,
    base: &str,
    mut read: impl FnMut(&str) -> Option<f64>,
) -> Option<f64> {
    let text = text.split('(').next().unwrap_or(text);
    let mut tokens = text.split_whitespace();
    let (number, unit) = (tokens.next()?, tokens.next()?);
    if tokens.next().is_some() {
        return None;
    }
    Some(read(number)? * prefix(unit.strip_suffix(base)?)? / 1e9)
}

fn prefix(text: &str) -> Option<f64> {
    let powers = ["", "k", "M", "G", "T", "P", "E", "Z", "Y"];
    let power = powers.iter().position(|prefix| *prefix == text)?;
    Some(1000f64.powi(i32::try_from(power).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::finite;

    fn check(got: Option<f64>, expected: Option<f64>, text: &str) {
        let close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other.abs();
        let same = match (got, expected) {
            (Some(got), Some(expected)) => close(got, expected),
            (None, None) => true,
            _ => false,
        };
        assert!(same, "{text}: {got:?} is not {expected:?}");
    }

    #[test]
    fn durations_of_every_form_are_seconds() {
        for (text, expected) in [
            ("412.731 seconds.", Some(412.731)),
            ("1 h 3 min 12.3457 s", Some(3792.3457)),
            ("2 d 0 h 0 min 1.0000 s", Some(172_801.0)),
            ("1 min 12.3456 s (min: 1 min 12.1 s, max: 1 min 12.5 s)", Some(72.3456)),
            ("250.1000 ms", Some(0.2501)),
            ("5 min 250.1000 ms", Some(300.2501)),
            ("12.0000 µs", Some(12e-6)),
            ("12.3456 s 1 min", None),
            ("12.3456", None),
            ("12 parsecs", None),
            ("", None),
        ] {
            check(seconds(text, finite), expected, text);
        }
    }

    #[test]
    fn prefixes_are_taken_into_account() {
        for (text, base, expected) in [
            ("12.3456 TFLOP/s", "FLOP/s", Some(12_345.6)),
            ("384.1 GFLOP/s (per rank: 1)", "FLOP/s", Some(384.1)),
            ("1.5 PFLOP", "FLOP", Some(1.5e6)),
            ("900.0 MFLOP/s", "FLOP/s", Some(0.9)),
            ("1.2 TiB/s", "FLOP/s", None),
            ("12", "FLOP/s", None),
        ] {
            check(giga(text, base, finite), expected, text);
        }
    }
}
