//! What an instance costs per hour: a table kept beside this file, no call.

use std::collections::HashMap;
use std::sync::LazyLock;

static PRICES: LazyLock<HashMap<&str, i64>> = LazyLock::new(|| {
    let pair = |line: &'static str| {
        let mut cells = line.split(',');
        Some((cells.next()?, cells.next()?.parse().ok()?))
    };
    rows().filter_map(pair).collect()
});

fn rows() -> impl Iterator<Item = &'static str> {
    include_str!("prices.csv").lines().filter(|line| !line.starts_with('#')).skip(1)
}

/// On-demand Linux price of a type, micro-dollars per hour; `None` when the table lacks it.
pub fn price(instance_type: &str) -> Option<i64> {
    PRICES.get(instance_type).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_type_and_a_plausible_price_and_no_type_is_there_twice() {
        assert_eq!(rows().count(), PRICES.len());
        for (name, price) in PRICES.iter() {
            assert!(name.contains('.') && (1_000..1_000_000_000).contains(price), "{name} {price}");
        }
        assert_eq!(price("c5n.18xlarge"), Some(3_888_000));
        assert_eq!(price("hpc9z.metal"), None);
    }
}
