//! `Filter.N`: names that are known, values with `*` and `?`.

use crate::ledger::Tags;
use crate::wire::{ApiError, Params};

/// One filter: any of the values.
#[derive(Debug, Clone)]
pub struct Filter {
    name: String,
    values: Vec<String>,
}

/// All filters of a request: each must match.
#[derive(Debug, Clone, Default)]
pub struct Filters(Vec<Filter>);

/// EC2's bound on the values of one filter.
const MAX_VALUES: usize = 200;

impl Filters {
    /// Reads them, refusing names that are neither `known` nor about tags.
    pub fn read(params: &mut Params, known: &[&str]) -> Result<Self, ApiError> {
        let filters = params.list("Filter", |p| {
            Ok(Filter { name: p.required("Name")?, values: p.texts("Value")? })
        })?;
        for filter in &filters {
            filter.check(known)?;
        }
        Ok(Self(filters))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a resource passes. `values` gives what the resource has for a
    /// filter name; tags are matched here.
    pub fn pass(&self, tags: &Tags, values: impl Fn(&str) -> Vec<String>) -> bool {
        self.0.iter().all(|filter| {
            let found = match filter.name.strip_prefix("tag:") {
                Some(key) => tags.get(key).cloned().into_iter().collect(),
                None if filter.name == "tag-key" => tags.keys().cloned().collect(),
                None => values(&filter.name),
            };
            found.iter().any(|value| filter.values.iter().any(|pattern| glob(pattern, value)))
        })
    }
}

impl Filter {
    fn check(&self, known: &[&str]) -> Result<(), ApiError> {
        let about_tags = self.name.starts_with("tag:") || self.name == "tag-key";
        if !about_tags && !known.contains(&self.name.as_str()) {
            return Err(ApiError::client(
                "InvalidParameterValue",
                format!("The filter '{}' is invalid", self.name),
            ));
        }
        if self.values.is_empty() {
            return Err(ApiError::client(
                "InvalidParameterValue",
                format!("The filter '{}' has no values", self.name),
            ));
        }
        if self.values.len() > MAX_VALUES {
            return Err(ApiError::client(
                "FilterLimitExceeded",
                format!(
                    "The maximum number of filter values specified on a single call is {MAX_VALUES}"
                ),
            ));
        }
        Ok(())
    }
}

/// `*` is any text, `?` one character.
pub fn glob(pattern: &str, text: &str) -> bool {
    fn matches(pattern: &[char], text: &[char]) -> bool {
        let Some((first, rest)) = pattern.split_first() else { return text.is_empty() };
        let tail = text.split_first();
        match (first, tail) {
            ('*', None) => matches(rest, text),
            ('*', Some((_, tail))) => matches(rest, text) || matches(pattern, tail),
            ('?', Some((_, tail))) => matches(rest, tail),
            (wanted, Some((found, tail))) => wanted == found && matches(rest, tail),
            (_, None) => false,
        }
    }
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    matches(&pattern, &text)
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs_match_like_ec2() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a*-x86_64-*", "aws-amzn-x86_64-2026", true),
            ("*", "", true),
            ("?", "", false),
            ("c5n.*", "c5n.18xlarge", true),
            ("c5.*", "c5n.18xlarge", false),
        ] {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        }
    }
}
