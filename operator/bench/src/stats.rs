//! What a set of repeats says. The unit of replication is the job, never the inner iteration of a program.

/// The middle value, or the mean of the two middle values; `None` for no value or one that is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(*upper);
    }
    let lower = sorted.get(middle.checked_sub(1)?)?;
    Some(lower + (upper - lower) / 2.0)
}

/// Relative standard deviation in percent, with n - 1; `None` for fewer than two values or a mean of 0.
pub fn rsd(values: &[f64]) -> Option<f64> {
    let percent = deviation(values)? / mean(values)?.abs() * 100.0;
    percent.is_finite().then_some(percent)
}

/// Standard deviation of a sample, with n - 1; `None` for fewer than two values or one that is not finite.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let degrees = count(values.len().checked_sub(1).filter(|n| *n > 0)?);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / degrees).sqrt();
    deviation.is_finite().then_some(deviation)
}

/// The arithmetic mean: for costs (seconds, money), not for rates; `None` for no value or one that is not finite.
pub fn mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / count(values.len());
    mean.is_finite().then_some(mean)
}

/// The harmonic mean: for rates (bandwidth, rating); `None` unless every value is above 0.
pub fn harmonic_mean(values: &[f64]) -> Option<f64> {
    if values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let mean = count(values.len()) / values.iter().map(|value| value.recip()).sum::<f64>();
    mean.is_finite().then_some(mean)
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_exact_and_refuses_what_is_not_a_number() {
        for (values, expected) in [
            (&[][..], None),
            (&[3.0][..], Some(3.0)),
            (&[3.0, 1.0, 2.0][..], Some(2.0)),
            (&[4.0, 1.0, 3.0, 2.0][..], Some(2.5)),
            (&[f64::MAX, f64::MAX][..], Some(f64::MAX)),
            (&[1.0, f64::NAN][..], None),
            (&[1.0, f64::INFINITY][..], None),
        ] {
            assert_eq!(median(values), expected, "{values:?}");
        }
    }

    #[test]
    fn spread_uses_n_minus_1_and_is_absent_where_it_has_no_meaning() {
        let percent = rsd(&[1501.2, 1498.8, 1510.0]).unwrap();
        assert!((percent - 5.896_891_3 / 1_503.333_333 * 100.0).abs() < 1e-6, "{percent}");
        assert_eq!(rsd(&[5.0, 5.0]), Some(0.0));
        for values in [&[][..], &[1.0][..], &[1.0, -1.0][..], &[f64::NAN, 1.0][..]] {
            assert_eq!(rsd(values), None, "{values:?}");
        }
    }

    #[test]
    fn rates_are_averaged_harmonically() {
        let mean = harmonic_mean(&[40.0, 60.0]).unwrap();
        assert!((mean - 48.0).abs() < 1e-9, "{mean}");
        for values in [&[][..], &[0.0, 1.0][..], &[-1.0][..], &[f64::NAN][..]] {
            assert_eq!(harmonic_mean(values), None, "{values:?}");
        }
    }
}
