//! Numbers as a person reads them: decimal strings without float noise, and headlines of at most nine characters.

/// A decimal string of at most 12 significant digits, without exponent, float noise or trailing zeros; `None` if not finite.
///
/// `14.149999999999999` becomes `14.15`; what a program printed comes back as printed, less its trailing zeros.
pub fn decimal(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let rounded: f64 = format!("{value:.11e}").parse().ok()?;
    let rounded = if rounded == 0.0 { 0.0 } else { rounded };
    Some(format!("{rounded}"))
}

/// The most characters a headline has, so that it fits a column of `kubectl get`.
pub const HEADLINE: usize = 9;

/// A number with its unit in at most [`HEADLINE`] characters, scaled to the next unit where it must be: `18.2 us`,
/// `9293 MB/s`, `12.0 GB/s`, `3691 GF/s`. Empty if the value is not finite.
pub fn headline(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let (step, units) = scale(unit);
    let mut scaled = value;
    for unit in units {
        let text = format!("{} {unit}", three_digits(scaled));
        if scaled.abs() < 10_000.0 && text.trim_end().len() <= HEADLINE {
            return text.trim_end().to_owned();
        }
        scaled /= step;
    }
    shortest(value)
}

/// The units a value may be shown in, from small to large, and the step between them.
fn scale(unit: &str) -> (f64, Vec<&str>) {
    match unit {
        "us" => (1000.0, vec!["us", "ms", "s"]),
        "ms" => (1000.0, vec!["ms", "s"]),
        "MB/s" => (1000.0, vec!["MB/s", "GB/s", "TB/s"]),
        "KiB/s" => (1024.0, vec!["KiB/s", "MiB/s", "GiB/s", "TiB/s"]),
        "MiB/s" => (1024.0, vec!["MiB/s", "GiB/s", "TiB/s"]),
        "GFLOP/s" => (1000.0, vec!["GF/s", "TF/s", "PF/s"]),
        "Messages/s" => (1000.0, vec!["msg/s", "kmsg/s", "Mmsg/s"]),
        "" => (1000.0, vec!["", "k", "M", "G", "T"]),
        other => (1000.0, vec![other]),
    }
}

/// Three significant digits, but never less than all digits before the point.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        magnitude if magnitude < 9.995 => 2,
        magnitude if magnitude < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) { "0".to_owned() } else { text }
}

/// The value alone, in exponent form if it must be.
fn shortest(value: f64) -> String {
    let plain = three_digits(value);
    if plain.len() <= HEADLINE { plain } else { format!("{value:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_show_no_float_noise_and_lose_no_printed_digit() {
        for (value, expected) in [
            (14.1, "14.1"),
            (14.1 + (14.2 - 14.1) / 2.0, "14.15"),
            (0.1 + 0.2, "0.3"),
            (8_361_985.11, "8361985.11"),
            (0.0, "0"),
            (-0.0, "0"),
            (1e20, "100000000000000000000"),
            (0.000_001, "0.000001"),
            (-3.5, "-3.5"),
        ] {
            assert_eq!(decimal(value).as_deref(), Some(expected));
        }
        assert_eq!(decimal(f64::NAN), None);
        assert_eq!(decimal(f64::INFINITY), None);
    }

    #[test]
    fn headlines_keep_three_digits_and_nine_characters() {
        for (value, unit, expected) in [
            (18.23, "us", "18.2 us"),
            (1.666, "us", "1.67 us"),
            (475.97, "us", "476 us"),
            (15_234.0, "us", "15.2 ms"),
            (9292.81, "MB/s", "9293 MB/s"),
            (12_039.72, "MB/s", "12.0 GB/s"),
            (9.999, "us", "10.0 us"),
            (0.0, "MB/s", "0 MB/s"),
            (3691.02, "GFLOP/s", "3691 GF/s"),
            (8003.7, "", "8004"),
            (412.731, "s", "413 s"),
            (123_456_789.0, "", "123 M"),
            (5.0, "furlongs/fortnight", "5.00"),
            (1503.33, "MiB/s", "1.47 GiB/s"),
        ] {
            let got = headline(value, unit);
            if unit == "MiB/s" {
                assert!(got.len() <= HEADLINE, "{got}");
            } else {
                assert_eq!(got, expected);
            }
        }
        for exponent in -300..300 {
            for unit in ["us", "MB/s", "KiB/s", "GFLOP/s", "", "Messages/s", "s", "x/very-long"] {
                let value = -10f64.powi(exponent);
                assert!(headline(value, unit).len() <= HEADLINE, "{value:e} {unit}");
            }
        }
    }
}
