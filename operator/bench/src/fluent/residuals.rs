//! Residual lines: by far the most lines of a transcript, so they are told by their ends and not by a pattern.

/// The iteration a residual line is of, and how many are to come; `None` for any other line.
///
/// `     1  1.0000e+00  2.1000e-03  0:00:10   24`
pub(super) fn read(text: &str) -> Option<(u64, u64)> {
    let text = text.trim();
    if !text.as_bytes().first()?.is_ascii_digit() || !text.as_bytes().last()?.is_ascii_digit() {
        return None;
    }
    let (rest, remaining) = text.rsplit_once(' ')?;
    let (rest, clock) = rest.trim_end().rsplit_once(' ')?;
    let (iteration, residuals) = rest.split_once(' ')?;
    if !is_clock(clock) || residuals.trim().is_empty() {
        return None;
    }
    Some((iteration.parse().ok()?, remaining.parse().ok()?))
}

/// `h:mm:ss`.
fn is_clock(text: &str) -> bool {
    let mut parts = text.split(':');
    let two = |part: Option<&str>| part.is_some_and(|part| part.len() == 2 && is_number(part));
    let hours = parts.next().is_some_and(|hours| !hours.is_empty() && is_number(hours));
    hours && two(parts.next()) && two(parts.next()) && parts.next().is_none()
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_line_says_how_far_the_solver_is() {
        for (line, expected) in [
            ("     1  1.0000e+00  2.1000e-03  0:00:10   24", Some((1, 24))),
            ("   130  1.0e-03  2.1e-03  12:34:56    0", Some((130, 0))),
            ("  iter  continuity  x-velocity     time/iter", None),
            ("128   17.50", None),
            ("2 more ranks printed the same notice", None),
            ("2024-06-10 07:00:00 5", None),
            ("1 0:00:10 24", None),
            ("", None),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
