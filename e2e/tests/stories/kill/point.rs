//! One moment to die: a call that changes AWS, named so that every run of a life finds it again.

use std::fmt;

use hpc_e2e::sim::Call;

/// One such call of a clean run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Such as `RunInstances`.
    pub action: String,
    /// The `hpcops.dev:role` it is about, if any.
    pub role: Option<String>,
    /// Which successful call of this action and role, from 1.
    pub occurrence: u32,
}

impl fmt::Display for Point {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}_{}_{}", self.action, self.role.as_deref().unwrap_or(""), self.occurrence)
    }
}

impl Point {
    /// The point of a call, unless it failed or is a head's own report.
    pub fn of(call: &Call) -> Option<Self> {
        let ours = call.code.as_deref() == Some("OK") && call.action != "PutParameter";
        ours.then(|| Self {
            action: call.action.clone(),
            role: call.role.clone(),
            occurrence: call.occurrence,
        })
    }

    /// The points of a committed list: lines of `Action_role_occurrence`, sorted.
    pub fn list(text: &str) -> Vec<Self> {
        text.lines().filter(|line| !line.starts_with('#')).map(Self::read).collect()
    }

    fn read(line: &str) -> Self {
        let mut words = line.split('_');
        let mut word = || words.next().expect("three words in each line").to_owned();
        let (action, role) = (word(), Some(word()).filter(|role| !role.is_empty()));
        let occurrence = word().parse().expect("the third word is a number");
        Self { action, role, occurrence }
    }
}
