//! Chance from a seed: every draw is a function of (seed, purpose, key), so a
//! seed reproduces a run whatever the order of threads.

use sha2::{Digest, Sha256};

/// The source of all chance in one simulator.
#[derive(Debug, Clone, Copy)]
pub struct Dice {
    seed: u64,
}

impl Dice {
    /// Dice with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// A number in `0.0..=1.0`.
    pub fn unit(self, purpose: &str, key: &str) -> f64 {
        let bytes = self.draw(purpose, key).first_chunk().copied().unwrap_or_default();
        f64::from(u32::from_be_bytes(bytes)) / f64::from(u32::MAX)
    }

    /// A sortable number.
    pub fn number(self, purpose: &str, key: &str) -> u64 {
        u64::from_be_bytes(self.draw(purpose, key).first_chunk().copied().unwrap_or_default())
    }

    fn draw(self, purpose: &str, key: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.seed.to_be_bytes());
        hash.update(purpose.as_bytes());
        hash.update([0]);
        hash.update(key.as_bytes());
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_reproduces_and_another_differs() {
        let draw = |seed, key| Dice::new(seed).number("x", key);
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        let unit = Dice::new(7).unit("x", "a");
        assert!((0.0..=1.0).contains(&unit));
    }
}
