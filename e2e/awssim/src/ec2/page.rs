//! Pages. The order of a listing is unspecified in AWS, so here it differs
//! from listing to listing; within one listing every resource that stays is
//! shown exactly once.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::dice::Dice;
use crate::wire::{ApiError, Params};

/// Which part of a listing is asked for.
#[derive(Debug, Clone, Default)]
pub struct Page {
    max: Option<usize>,
    salt: Option<String>,
    after: Option<u64>,
}

impl Page {
    /// Reads `MaxResults` (within `bounds`) and `NextToken`.
    pub fn read(params: &mut Params, bounds: (usize, usize)) -> Result<Self, ApiError> {
        let max = params.number("MaxResults")?;
        let token = params.text("NextToken")?;
        Self::new(max, token.as_deref(), bounds)
    }

    /// Checks both.
    pub fn new(
        max: Option<usize>,
        token: Option<&str>,
        (least, most): (usize, usize),
    ) -> Result<Self, ApiError> {
        if let Some(max) = max.filter(|max| !(least..=most).contains(max)) {
            return Err(ApiError::invalid_value(
                "maxResults",
                &max.to_string(),
                &format!("Expecting a value between {least} and {most}."),
            ));
        }
        let Some(token) = token else {
            return Ok(Self { max, ..Self::default() });
        };
        let (salt, after) = decode(token).ok_or_else(|| {
            ApiError::client("InvalidNextToken", "The provided NextToken is not valid.")
        })?;
        Ok(Self { max, salt: Some(salt), after: Some(after) })
    }

    /// The same page, with a size if it has none.
    #[must_use]
    pub fn or_size(mut self, size: usize) -> Self {
        self.max.get_or_insert(size);
        self
    }

    /// Whether a page size was given.
    pub fn is_sized(&self) -> bool {
        self.max.is_some()
    }
}

fn decode(token: &str) -> Option<(String, u64)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (salt, after) = text.rsplit_once('/')?;
    Some((salt.to_owned(), after.parse().ok()?))
}

/// One page of `(id, value)` pairs and the token of the next one. `fresh` must
/// differ between listings.
pub fn paginate<T>(
    items: Vec<(String, T)>,
    page: &Page,
    dice: Dice,
    fresh: &str,
) -> (Vec<T>, Option<String>) {
    let salt = page.salt.as_deref().unwrap_or(fresh);
    let mut ranked: Vec<(u64, T)> =
        items.into_iter().map(|(id, item)| (dice.number(salt, &id), item)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.retain(|(rank, _)| page.after.is_none_or(|after| *rank > after));
    let size = page.max.unwrap_or(usize::MAX);
    let has_more = ranked.len() > size;
    ranked.truncate(size);
    let token = ranked
        .last()
        .filter(|_| has_more)
        .map(|(rank, _)| URL_SAFE_NO_PAD.encode(format!("{salt}/{rank}")));
    (ranked.into_iter().map(|(_, item)| item).collect(), token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_show_each_item_once_in_an_order_of_their_own() {
        let items = || (0..23).map(|n| (format!("i-{n}"), n)).collect::<Vec<_>>();
        let walk = |fresh: &str| {
            let (mut seen, mut token) = (Vec::new(), None);
            loop {
                let page = Page::new(Some(5), token.as_deref(), (5, 1000)).unwrap();
                let (items, next) = paginate(items(), &page, Dice::new(1), fresh);
                seen.extend(items);
                token = next;
                if token.is_none() {
                    return seen;
                }
            }
        };
        let (first, second) = (walk("a"), walk("b"));
        assert_ne!(first, second);
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..23).collect::<Vec<_>>());
    }

    #[test]
    fn bad_tokens_and_sizes_are_refused() {
        assert_eq!(Page::new(Some(4), None, (5, 9)).unwrap_err().code, "InvalidParameterValue");
        assert_eq!(Page::new(None, Some("zz"), (5, 9)).unwrap_err().code, "InvalidNextToken");
    }
}
