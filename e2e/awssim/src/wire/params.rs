//! EC2 query parameters: `Filter.1.Value.2=x` as a tree that is emptied while
//! it is read, so that what nobody read is an unknown parameter.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::ApiError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Leaf(String),
    Branch(BTreeMap<String, Node>),
}

/// A structure of parameters. Reading takes the value out; [`Params::finish`]
/// refuses what is left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params {
    path: String,
    fields: BTreeMap<String, Node>,
}

impl Params {
    /// Builds the tree from decoded pairs.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, ApiError> {
        let mut root = BTreeMap::new();
        for (key, value) in pairs {
            insert(&mut root, key, value).ok_or_else(|| ApiError::unknown_parameter(key))?;
        }
        Ok(Self { path: String::new(), fields: root })
    }

    /// Reads the whole request and refuses what `read` left.
    pub fn read<T>(
        mut self,
        read: impl FnOnce(&mut Params) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let value = read(&mut self)?;
        self.finish()?;
        Ok(value)
    }

    /// An optional text. An empty value counts as absent, as in EC2.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.fields.remove(name) {
            None => Ok(None),
            Some(Node::Leaf(value)) => Ok(Some(value).filter(|value| !value.is_empty())),
            Some(Node::Branch(_)) => Err(ApiError::unknown_parameter(&self.full(name))),
        }
    }

    /// A text that must be there.
    pub fn required(&mut self, name: &str) -> Result<String, ApiError> {
        self.text(name)?.ok_or_else(|| ApiError::missing(&self.full(name)))
    }

    /// An optional number.
    pub fn number<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        self.parsed(name, "Expected a number.")
    }

    /// An optional boolean.
    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        self.parsed(name, "Expected true or false.")
    }

    fn parsed<T: FromStr>(&mut self, name: &str, why: &str) -> Result<Option<T>, ApiError> {
        let path = self.full(name);
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_unparsable| ApiError::invalid_value(&path, &text, why))
    }

    /// A list of texts (`Name.1`, `Name.2`, …), in the order of the numbers.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, ApiError> {
        let path = self.full(name);
        let members = self.members(name)?;
        members
            .into_iter()
            .map(|(index, node)| match node {
                Node::Leaf(text) => Ok(text),
                Node::Branch(_) => Err(ApiError::unknown_parameter(&format!("{path}.{index}"))),
            })
            .collect()
    }

    /// A list of structures, each read by `read` and then checked for leftovers.
    pub fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(&mut Params) -> Result<T, ApiError>,
    ) -> Result<Vec<T>, ApiError> {
        let path = self.full(name);
        let members = self.members(name)?;
        members
            .into_iter()
            .map(|(index, node)| read_structure(format!("{path}.{index}"), node, &read))
            .collect()
    }

    /// An optional structure, read by `read` and then checked for leftovers.
    pub fn structure<T>(
        &mut self,
        name: &str,
        read: impl Fn(&mut Params) -> Result<T, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        let path = self.full(name);
        self.fields.remove(name).map(|node| read_structure(path, node, &read)).transpose()
    }

    /// Refuses whatever nobody read.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(name) => Err(ApiError::unknown_parameter(&self.full(name))),
        }
    }

    fn members(&mut self, name: &str) -> Result<Vec<(u32, Node)>, ApiError> {
        let path = self.full(name);
        let branch = match self.fields.remove(name) {
            None => return Ok(Vec::new()),
            Some(Node::Leaf(_)) => return Err(ApiError::unknown_parameter(&path)),
            Some(Node::Branch(branch)) => branch,
        };
        let mut members = branch
            .into_iter()
            .map(|(index, node)| match index.parse() {
                Ok(number) => Ok((number, node)),
                Err(_) => Err(ApiError::unknown_parameter(&format!("{path}.{index}"))),
            })
            .collect::<Result<Vec<(u32, Node)>, _>>()?;
        members.sort_by_key(|(index, _)| *index);
        Ok(members)
    }

    fn full(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

fn read_structure<T>(
    path: String,
    node: Node,
    read: &impl Fn(&mut Params) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let Node::Branch(fields) = node else {
        return Err(ApiError::unknown_parameter(&path));
    };
    let mut params = Params { path, fields };
    let value = read(&mut params)?;
    params.finish()?;
    Ok(value)
}

/// `None` when the key clashes with one that is a value, or the reverse.
fn insert(root: &mut BTreeMap<String, Node>, key: &str, value: &str) -> Option<()> {
    let Some((head, rest)) = key.split_once('.') else {
        let previous = root.insert(key.to_owned(), Node::Leaf(value.to_owned()));
        return previous.is_none().then_some(());
    };
    let child = root.entry(head.to_owned()).or_insert_with(|| Node::Branch(BTreeMap::new()));
    match child {
        Node::Leaf(_) => None,
        Node::Branch(branch) => insert(branch, rest, value),
    }
}

/// Decodes `application/x-www-form-urlencoded` text.
pub fn decode_form(body: &str) -> Vec<(String, String)> {
    body.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(key), percent_decode(value))
        })
        .collect()
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%').then(|| tail.get(..2).and_then(hex_byte)).flatten();
        bytes.push(escaped.unwrap_or(if first == b'+' { b' ' } else { first }));
        rest = if escaped.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(body: &str) -> Params {
        Params::from_pairs(&decode_form(body)).unwrap()
    }

    #[test]
    fn lists_keep_the_order_of_their_numbers() {
        let mut p = params("Id.10=k&Id.2=b&Id.1=a%20%2B+c");
        assert_eq!(p.texts("Id").unwrap(), ["a + c", "b", "k"]);
        p.finish().unwrap();
    }

    #[test]
    fn what_nobody_read_is_an_unknown_parameter() {
        let mut p = params("Filter.1.Name=x&Filter.1.Nmae=y");
        let error = p.list("Filter", |f| f.required("Name")).unwrap_err();
        assert_eq!(error.message, "The parameter Filter.1.Nmae is not recognized");
        assert_eq!(params("A=1").finish().unwrap_err().code, "UnknownParameter");
    }

    #[test]
    fn wrong_types_and_absent_values_name_the_whole_path() {
        let error = params("N.1.Size=big").list("N", |n| n.number::<u32>("Size")).unwrap_err();
        assert_eq!(
            error.message,
            "Value (big) for parameter N.1.Size is invalid. Expected a number."
        );
        let error = params("N.1.Size=1").list("N", |n| n.required("Name")).unwrap_err();
        assert_eq!(error.message, "The request must contain the parameter N.1.Name");
    }
}
