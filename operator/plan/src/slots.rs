//! Sets of node numbers, written as Slurm writes them: `1-64,66`. A gang of a thousand nodes fits in
//! a tag, a status and a parameter.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most nodes one text may name; more is no text of ours.
const MOST: usize = 10_000;

/// Numbers of nodes of one queue, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slots(BTreeSet<i32>);

impl Slots {
    /// From `first` to `last`, both included.
    pub fn span(first: i32, last: i32) -> Self {
        Self((first..=last).collect())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The first alone.
    #[must_use]
    pub fn first(&self) -> Self {
        self.iter().take(1).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this one is among them.
    pub fn contains(&self, slot: i32) -> bool {
        self.0.contains(&slot)
    }

    /// In ascending order, which is their order in a launch.
    pub fn iter(&self) -> impl Iterator<Item = i32> + '_ {
        self.0.iter().copied()
    }

    /// The `index`-th in a launch.
    pub fn nth(&self, index: i32) -> Option<i32> {
        self.iter().nth(usize::try_from(index).ok()?)
    }

    /// Those that are not among `others`.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        self.iter().filter(|slot| !others.contains(*slot)).collect()
    }

    /// Whether all are among `others`.
    pub fn is_within(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }
}

impl FromIterator<i32> for Slots {
    fn from_iter<I: IntoIterator<Item = i32>>(slots: I) -> Self {
        Self(slots.into_iter().collect())
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(i32, i32)> = vec![];
        for slot in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == slot => *last = slot,
                _ => runs.push((slot, slot)),
            }
        }
        let words = runs.into_iter().map(|(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        });
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

/// A text that names no set of nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no nodes: write numbers and ranges such as 1-64,66, at most {MOST} in all")]
pub struct NotSlots(String);

impl FromStr for Slots {
    type Err = NotSlots;

    fn from_str(text: &str) -> Result<Self, NotSlots> {
        let wrong = || NotSlots(text.chars().take(64).collect());
        let mut slots = BTreeSet::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let (first, last) = (number(first).ok_or_else(wrong)?, number(last).ok_or_else(wrong)?);
            let count = usize::try_from(last - first + 1).map_err(|_downwards| wrong())?;
            if count == 0 || slots.len() + count > MOST {
                return Err(wrong());
            }
            slots.extend(first..=last);
        }
        Ok(Self(slots))
    }
}

/// A positive number without sign or blanks.
fn number(word: &str) -> Option<i32> {
    let plain = word.len() <= 6 && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|number| plain && *number > 0)
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_in_runs_and_read_back() {
        for text in ["", "1", "1-3", "1-3,7", "2,4,6-1000"] {
            let slots: Slots = text.parse().unwrap();
            assert_eq!(slots.to_string(), text);
        }
        assert_eq!("3,1,2".parse::<Slots>().unwrap().to_string(), "1-3");
    }

    #[test]
    fn what_names_no_nodes_is_refused() {
        for text in
            ["x", "0", "-1", "3-1", "2-1", "1-99999", "1-10001", "1--2", "+1", "1 - 2", "9999999"]
        {
            assert!(text.parse::<Slots>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_order_of_a_launch_is_ascending() {
        let slots: Slots = "3,9-10".parse().unwrap();
        assert_eq!(
            [0, 1, 2, 3, -1].map(|index| slots.nth(index)),
            [Some(3), Some(9), Some(10), None, None]
        );
    }
}
