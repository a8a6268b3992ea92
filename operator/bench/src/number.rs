//! Numbers as programs print them: decimal point or comma, Fortran exponents, nan and inf.

use crate::failure::{ParseError, Reason};
use crate::parsed::Parsed;

/// A number as printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Printed {
    /// Finite.
    Number {
        /// Its value.
        value: f64,
        /// Digits after the decimal mark.
        decimals: usize,
        /// Whether the decimal mark is a comma; `None` without a mark.
        comma: Option<bool>,
    },
    /// `nan`, `inf`, `-nan`, `infinity`, `****`: printed where a number belongs, but none.
    NotNumeric,
}

/// Reads a whole token; `None` if it is not something a program prints for a number. Thousands marks are not accepted:
/// `1,234.5` has no single meaning.
pub(crate) fn printed(token: &str) -> Option<Printed> {
    plain(token).or_else(|| any(token))
}

/// Whether a token is digits with at most one point among them: most numbers are, and this is quickly seen.
pub(crate) fn is_plain(token: &str) -> bool {
    let unsigned = token.strip_prefix('-').unwrap_or(token);
    let mut points = 0;
    let all = unsigned.bytes().all(|byte| {
        points += u8::from(byte == b'.');
        byte.is_ascii_digit() || (byte == b'.' && points == 1)
    });
    all && unsigned.len() > usize::from(points)
}

fn plain(token: &str) -> Option<Printed> {
    if !is_plain(token) {
        return None;
    }
    let value: f64 = token.parse().ok().filter(|value: &f64| value.is_finite())?;
    let point = token.bytes().position(|byte| byte == b'.');
    let decimals = point.map_or(0, |point| token.len() - point - 1);
    Some(Printed::Number { value, decimals, comma: point.map(|_| false) })
}

fn any(token: &str) -> Option<Printed> {
    let unsigned = token.strip_prefix(['+', '-']).unwrap_or(token);
    if is_not_numeric(unsigned) {
        return Some(Printed::NotNumeric);
    }
    let (mantissa, exponent) = split_exponent(unsigned);
    let comma = match (mantissa.matches('.').count(), mantissa.matches(',').count()) {
        (0, 0) => None,
        (1, 0) => Some(false),
        (0, 1) => Some(true),
        _ => return None,
    };
    let decimals = mantissa.split_once(['.', ',']).map_or(0, |(_, after)| after.len());
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || digits + usize::from(comma.is_some()) != mantissa.len() {
        return None;
    }
    let sign = if token.starts_with('-') { "-" } else { "" };
    let text = format!("{sign}{}e{}", mantissa.replace(',', "."), exponent?);
    let value: f64 = text.parse().ok()?;
    let number = Printed::Number { value, decimals, comma };
    Some(if value.is_finite() { number } else { Printed::NotNumeric })
}

/// A finite number with a decimal point, or `None`.
pub(crate) fn finite(token: &str) -> Option<f64> {
    match printed(token)? {
        Printed::Number { value, comma, .. } if comma != Some(true) => Some(value),
        Printed::Number { .. } | Printed::NotNumeric => None,
    }
}

/// The decimal mark of an output: points, or commas throughout.
#[derive(Debug, Default, Clone)]
pub(crate) struct Marks {
    comma: Option<bool>,
    mixed: Option<u64>,
}

impl Marks {
    /// Reads a whole token as a finite number with either mark, and notes which.
    pub(crate) fn read(&mut self, token: &str, line: u64) -> Option<f64> {
        let Printed::Number { value, comma, .. } = printed(token)? else { return None };
        if let Some(comma) = comma
            && comma != *self.comma.get_or_insert(comma)
        {
            self.mixed.get_or_insert(line);
        }
        Some(value)
    }

    /// Refuses an output that has both, and says so where it has commas.
    pub(crate) fn check(&self, parsed: &mut Parsed) -> Result<(), ParseError> {
        if let Some(line) = self.mixed {
            let detail = "decimal commas and decimal points in one output";
            return Err(ParseError::new(line, Reason::Malformed, detail));
        }
        if self.comma == Some(true) {
            parsed.warn(0, "numbers are written with a decimal comma");
        }
        Ok(())
    }
}

fn is_not_numeric(unsigned: &str) -> bool {
    let lower = unsigned.to_ascii_lowercase();
    matches!(lower.as_str(), "nan" | "inf" | "infinity" | "nan(ind)" | "nanq" | "nans")
        || lower.starts_with("nan(")
        || (lower.len() >= 2 && lower.bytes().all(|b| b == b'*'))
}

/// Splits off an exponent: `e`, `E`, and Fortran's `d`, `D` or a bare sign (`1.0+100`). `None` if the exponent is broken.
fn split_exponent(unsigned: &str) -> (&str, Option<&str>) {
    let mark = unsigned.find(['e', 'E', 'd', 'D', '+', '-']);
    let Some((mantissa, rest)) = mark.and_then(|at| unsigned.split_at_checked(at)) else {
        return (unsigned, Some("0"));
    };
    let exponent = rest.strip_prefix(['e', 'E', 'd', 'D']).unwrap_or(rest);
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let sound =
        !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit());
    (mantissa, sound.then_some(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_number_only_if_all_of_it_is() {
        let number = |value, decimals, comma| Some(Printed::Number { value, decimals, comma });
        for (token, expected) in [
            ("14.10", number(14.1, 2, Some(false))),
            ("14,10", number(14.1, 2, Some(true))),
            ("42", number(42.0, 0, None)),
            ("-1.5E+03", number(-1500.0, 1, Some(false))),
            ("1.5D-3", number(0.0015, 1, Some(false))),
            ("1.0+2", number(100.0, 1, Some(false))),
            ("nan", Some(Printed::NotNumeric)),
            ("-NaN", Some(Printed::NotNumeric)),
            ("inf", Some(Printed::NotNumeric)),
            ("1e999", Some(Printed::NotNumeric)),
            ("****", Some(Printed::NotNumeric)),
            ("1,234.5", None),
            ("1.2.3", None),
            ("", None),
            (".", None),
            ("-", None),
            ("e5", None),
            ("5e", None),
            ("5 ", None),
            ("0x10", None),
            ("14.1us", None),
        ] {
            assert_eq!(printed(token), expected, "{token:?}");
        }
    }
}
