//! Medians and geometric means. Ratios are averaged geometrically: the mean of a ratio and of its inverse agree.

/// The middle of the samples, or the mean of the two in the middle. `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The n-th root of the product of positive values. `None` without values, or when one is not positive and finite.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of workloads")]
    let count = values.len() as f64;
    Some((values.iter().map(|v| v.ln()).sum::<f64>() / count).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12 * b.abs()
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn median_ignores_one_outlier() {
        assert_eq!(median(&[1.0, 1.1, 900.0]), Some(1.1));
    }

    #[test]
    fn geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        assert!(close(geometric_mean(&[8.0, 0.125]).unwrap(), 1.0));
        assert!(close(geometric_mean(&[2.0, 8.0]).unwrap(), 4.0));
    }

    #[test]
    fn geometric_mean_refuses_what_has_none() {
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, f64::NAN]), None);
    }
}
